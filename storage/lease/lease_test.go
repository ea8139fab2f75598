package lease

import (
	"testing"
	"time"
)

// FuzzLease: what is accepted is written again as it is read.
func FuzzLease(f *testing.F) {
	f.Add(Append(nil, "trainer"), Name{Snapshot: 7, ID: "0123456789abcdef", Lasts: time.Hour}.ObjectName("ads"))
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		if owner, reason := decodeLease(b); reason == "" && string(Append(nil, owner)) != string(b) {
			t.Fatalf("%q is written otherwise", owner)
		}
		if l, ok := parseLease("ads", name); ok && l.ObjectName("ads") != name {
			t.Fatalf("%+v of %q", l, name)
		}
	})
}
