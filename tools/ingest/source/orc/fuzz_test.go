package orc

import (
	"bytes"
	"os"
	"testing"
)

func FuzzORC(f *testing.F) {
	for _, name := range []string{"near", "beside", "within"} {
		data, err := os.ReadFile("../testdata/orc/" + name + ".orc")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		tail, err := ReadTail(r, int64(len(data)))
		if err != nil {
			return
		}
		for typ := range min(8, len(tail.Types)) {
			m := &Timestamps{R: r, Tail: tail, Typ: uint64(typ)}
			for range 1000 {
				if _, _, err := m.Next(); err != nil {
					break
				}
			}
		}
	})
}
