package format_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/dsistore/dsistore/format"
)

// TestDump prints golden files, packs of them, and damaged copies:
//
//	file name=NAME [flip=BYTE [by=MASK]] [cut=LENGTH] [seal]
//	pack names=(NAME, ...) [flip=BYTE [by=MASK]] [cut=LENGTH] [seal]
//
// seal makes the directory's checksum right again.
func TestDump(t *testing.T) {
	datadriven.Walk(t, "testdata/dump", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b []byte
			switch d.Cmd {
			case "file":
				var name string
				d.ScanArgs(t, "name", &name)
				b = goldenFile(t, name)
			case "pack":
				var buf bytes.Buffer
				w, err := format.NewPackWriter(&buf)
				if err != nil {
					t.Fatal(err)
				}
				for _, arg := range d.CmdArgs {
					if arg.Key != "names" {
						continue
					}
					for i, name := range arg.Vals {
						if _, err := w.Add(uint64(i+1), goldenFile(t, name)); err != nil {
							t.Fatal(err)
						}
					}
				}
				if _, err := w.Finish(); err != nil {
					t.Fatal(err)
				}
				b = buf.Bytes()
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			flip, by, length := -1, 1, len(b)
			d.MaybeScanArgs(t, "flip", &flip)
			d.MaybeScanArgs(t, "by", &by)
			d.MaybeScanArgs(t, "cut", &length)
			if flip >= 0 {
				b[flip] ^= byte(by)
			}
			if b = b[:length]; d.HasArg("seal") {
				sealTail(b)
			}
			var out bytes.Buffer
			if err := format.Dump(&out, bytes.NewReader(b), int64(len(b))); err != nil {
				if !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) {
					t.Fatalf("untyped error: %v", err)
				}
				out.WriteString("error: " + err.Error() + "\n")
			}
			return out.String()
		})
	})
}

func goldenFile(t *testing.T, name string) []byte {
	b, err := os.ReadFile(goldenDir + "/" + name + ".dsf")
	if err != nil {
		t.Fatal(err)
	}
	return b
}
