package catalog

import (
	"reflect"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/names"
)

// FuzzEntries: what is accepted is written again as it is read.
func FuzzEntries(f *testing.F) {
	segment := names.NewID(names.TableID{1})
	f.Add(AppendDescriptor(nil, SegmentDescriptor{ID: segment.String(), Rows: 7, Bytes: 20, Features: 1, Objects: 1,
		Index: segment.IndexName(), IndexSize: 10}))
	f.Add(AppendFeature(nil, Feature{ID: NewFeatureID("a", 0), Name: "a", Type: vector.Type{Kind: vector.Dense,
		Elem: vector.Int64}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, reason := DecodeDescriptor(b); reason == "" {
			again, reason := DecodeDescriptor(AppendDescriptor(nil, d))
			if reason != "" || !reflect.DeepEqual(again, d) {
				t.Fatalf("%s %+v %+v", reason, again, d)
			}
		}
		if feat, reason := DecodeFeature("a", b); reason == "" {
			if again, reason := DecodeFeature("a", AppendFeature(nil, feat)); reason != "" || again != feat {
				t.Fatalf("%s %+v %+v", reason, again, feat)
			}
		}
	})
}

func FuzzPartition(f *testing.F) {
	for _, s := range []string{"", "ds=2026-11-01/hr=03", "a=__HIVE_DEFAULT_PARTITION__",
		"a=%5F_HIVE_DEFAULT_PARTITION__", "a=", "a=%2F%3D%25", "a=b=c", "=x", "a/b", "a=1/a=2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePartition(s)
		if err != nil {
			return
		}
		canonical := p.String()
		again, err := ParsePartition(canonical)
		if err != nil || !again.Equal(p) || again.String() != canonical {
			t.Fatalf("%q is %#v, whose form %q is %#v: %v", s, p, canonical, again, err)
		}
		for i := range len(canonical) {
			if canonical[i] < 0x20 {
				t.Fatalf("%q has a control byte", canonical)
			}
		}
	})
}
