package segment

import (
	"errors"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

func FuzzIndexRecords(f *testing.F) {
	s := NewStore(object.NewMemory(), format.Limits{}, 0)
	d := writeSegment(f, s, []uint32{3, 4})
	g, err := s.Open(f.Context(), d)
	if err != nil {
		f.Fatal(err)
	}
	v, err := g.table.Get(f.Context(), featureKey(g.id, userKey.ID), recordKey(g.id, factsRecord), recordKey(g.id,
		objectsRecord))
	if err != nil {
		f.Fatal(err)
	}
	for _, b := range v {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEntry(g.id, userKey.ID, b, g.stripes, format.Limits{})
		if e != nil { // ids are random: a salt that was of this feature in the process that made the seed is so here
			e.Meta.Salt = saltOf(g.id, userKey.ID)
			err = nil
			if reason := checkEntry(e, g.id, userKey.ID, g.stripes); reason != "" {
				err = wire.Corrupt("", reason)
			}
		}
		if err == nil {
			if e.Offset+e.Length > e.ObjectSize || len(e.Meta.Stripes) != len(g.stripes) {
				t.Fatalf("%+v", e)
			}
		} else if !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) {
			t.Fatal(err)
		}
		if stripes, reason := decodeFacts(b, 7); reason == "" {
			if again := appendFacts(nil, stripes); len(again) > len(b) {
				t.Fatal(stripes)
			}
		}
	})
}
