package format_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
)

// fuzzLimits keep a fuzzing process small.
var fuzzLimits = format.Limits{StripeRows: 1 << 14, StripeBytes: 1 << 20, FileStripes: 64, DirectoryBytes: 1 << 16}

// checkTyped fails unless err is nil or one that the package promises.
func checkTyped(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) {
		t.Fatalf("untyped error: %v", err)
	}
}

func FuzzDecodeMeta(f *testing.F) {
	for _, file := range goldenFiles(f) {
		if m, err := format.OpenFile(bytes.NewReader(file), 0, int64(len(file)), format.Limits{}); err == nil {
			f.Add(format.AppendMeta(nil, m))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := format.DecodeMeta(src, fuzzLimits)
		if err != nil {
			checkTyped(t, err)
			return
		}
		again, err := format.DecodeMeta(format.AppendMeta(nil, m), fuzzLimits)
		if err != nil {
			t.Fatalf("what was decoded does not decode again: %v", err)
		}
		if !reflect.DeepEqual(m, again) {
			t.Fatalf("got\n%+v\nwant\n%+v", again, m)
		}
	})
}

// FuzzOpenFile opens, decodes and dumps files as they are and with the directory's checksum made right.
func FuzzOpenFile(f *testing.F) {
	for _, file := range goldenFiles(f) {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		for range 2 {
			columns, err := readFile(file, fuzzLimits)
			checkTyped(t, err)
			for _, c := range columns {
				if err := c.Validate(); err != nil {
					t.Fatal(err)
				}
			}
			checkTyped(t, format.Dump(io.Discard, bytes.NewReader(file), int64(len(file))))
			file = bytes.Clone(file)
			sealTail(file)
		}
	})
}

// FuzzDecodeStripe decodes streams whose checksums were made right under any directory.
func FuzzDecodeStripe(f *testing.F) {
	for _, file := range goldenFiles(f) {
		m, err := format.OpenFile(bytes.NewReader(file), 0, int64(len(file)), format.Limits{})
		if err == nil {
			f.Add(format.AppendMeta(nil, m), file[4:m.End()])
		}
	}
	d := format.NewStripeDecoder(fuzzLimits)
	dst := new(vector.Column)
	f.Fuzz(func(t *testing.T, meta, body []byte) {
		m, err := format.DecodeMeta(meta, fuzzLimits)
		if err != nil || m.End() > 1<<16 {
			return
		}
		file := append(make([]byte, 4, m.End()), body...)
		file = append(file, make([]byte, m.End())...)[:m.End()]
		if at, length := m.Dictionary.Range(); length > 0 {
			seal(m, -1, 0, file[at:at+length])
			if err := use(d, file, m); err != nil {
				checkTyped(t, err)
				return
			}
		}
		for i := range m.Stripes {
			src := stripeBytes(file, m, i)
			sealStripe(m, i, src)
			err := d.DecodeStripe(dst, m, i, src, identityGroup(m, i))
			checkTyped(t, err)
			if err := dst.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzOpenPack(f *testing.F) {
	f.Add(smallPack(f))
	f.Fuzz(func(t *testing.T, pack []byte) {
		for range 2 {
			r := bytes.NewReader(pack)
			entries, err := format.OpenPack(r, int64(len(pack)), fuzzLimits)
			checkTyped(t, err)
			for _, e := range entries {
				_, err := format.OpenFile(r, int64(e.Offset), int64(e.Length), fuzzLimits)
				checkTyped(t, err)
			}
			checkTyped(t, format.Dump(io.Discard, r, int64(len(pack))))
			pack = bytes.Clone(pack)
			sealTail(pack)
		}
	})
}
