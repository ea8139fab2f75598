package snapshot

import (
	"bytes"
	"testing"
)

// FuzzSnapshotObject: what is accepted is written again as it is read.
func FuzzSnapshotObject(f *testing.F) {
	f.Add(AppendManifest(nil, Manifest{Info: Info{Number: 1, Operation: "ingest"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, reason := DecodeManifest(b, 1)
		if reason == "" && !bytes.Equal(AppendManifest(nil, m), b) {
			t.Fatalf("decoded what encodes otherwise: %+v", m)
		}
	})
}
