package format_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/format/vector/vectortest"
)

// What a Sizer says of a first stripe is what a file of that stripe takes: there, nothing is remembered either.
func TestSizerIsExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawColumn(rt, vectortest.DrawType(rt))
		file := func(stripes ...*vector.Column) int64 {
			var b bytes.Buffer
			w, err := format.NewWriter(&b, c.Type, format.WriterOptions{})
			if err != nil {
				rt.Fatal(err)
			}
			for _, c := range stripes {
				if err := w.WriteStripe(c); err != nil {
					rt.Fatal(err)
				}
			}
			m, n, err := w.Finish()
			if err != nil {
				rt.Fatal(err)
			}
			return n + int64(len(format.AppendMeta(nil, m)))
		}
		var s format.Sizer
		s.Reset(c.Type, false)
		got, err := s.Size(c)
		if err != nil {
			rt.Fatal(err)
		}
		// The entry says how many rows more than the stripe before; of the first, how many: a few bytes.
		want := file(c) - file()
		if d := want - int64(got); d < 0 || d > 8 {
			rt.Errorf("%d bytes in a file, %d by the sizer", want, got)
		}
		again, err := s.Size(c)
		if err != nil || again != got {
			rt.Errorf("%d bytes, then %d: %v", got, again, err)
		}
	})
}

func TestSizerOfBadStrings(t *testing.T) {
	c := vector.NewColumn(vector.Type{Kind: vector.String})
	c.Data = []byte{0xff}
	c.AddSlot()
	var s format.Sizer
	s.Reset(c.Type, false)
	if _, err := s.Size(c); err == nil {
		t.Error("a string that is not UTF-8 has a size")
	}
}

// What a writer notes of duplicates is in the directory, and none is where there is nothing to say.
func TestFoundIsKept(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := format.Found{Partial: rapid.Uint64().Draw(rt, "partial"), SavedBytes: rapid.Uint64().Draw(rt, "saved")}
		var b bytes.Buffer
		w, err := format.NewWriter(&b, vector.Type{Kind: vector.Bytes}, format.WriterOptions{Name: "f"})
		if err != nil {
			rt.Fatal(err)
		}
		w.Note(want)
		m, _, err := w.Finish()
		if err != nil {
			rt.Fatal(err)
		}
		src := format.AppendMeta(nil, m)
		got, err := format.DecodeMeta(src, format.Limits{})
		if err != nil || got.Found != want {
			rt.Fatalf("%+v: %v, want %+v", got, err, want)
		}
		for n := range src {
			if _, err := format.DecodeMeta(src[:n], format.Limits{}); err == nil {
				rt.Fatalf("%d bytes of %d are a directory", n, len(src))
			}
		}
		if want == (format.Found{}) {
			return
		}
		got.Found = format.Found{}
		if plain := format.AppendMeta(nil, got); len(plain) > len(src)-5 || plain[1] != 0 {
			rt.Errorf("%d bytes with nothing found, %d with: %x", len(plain), len(src), plain)
		}
	})
}
