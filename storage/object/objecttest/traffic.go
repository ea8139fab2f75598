package objecttest

import (
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

// Traffic checks that a store at a service counts what it sends, by kind. seen is how many requests the service saw. An
// upload of 20 MiB takes as many writes as uploads says, and three objects are deleted by as many requests as deletes.
func Traffic(t *testing.T, s object.Store, seen func() int64, uploads, deletes uint64) {
	var c object.TrafficCounter
	ctx, before := object.CountTraffic(t.Context(), &c), seen()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"one", "o", "three"}
	for _, name := range names {
		must(s.PutIfAbsent(ctx, name, []byte(name)))
	}
	w, err := s.Create(ctx, "large")
	must(err)
	_, err = w.Write(make([]byte, 20<<20))
	must(err)
	must(w.Commit(ctx))
	n := 0
	for _, err := range s.List(ctx, "", "") {
		must(err)
		n++
	}
	for _, name := range names {
		must(s.ReadAt(ctx, name, make([]byte, 1), 0))
	}
	_, err = s.Stat(ctx, "large")
	must(err)
	must(s.Delete(ctx, "large"))
	must(object.DeleteAll(ctx, s, names))
	got := c.Traffic()
	want := object.Traffic{
		Reads: 4, Lists: 1, Writes: 3 + uploads, Deletes: 1 + deletes, BytesDown: got.BytesDown, BytesUp: got.BytesUp,
	}
	if got != want || got.BytesDown < 3 || got.BytesUp < 20<<20 || n != 4 {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if n := seen() - before; uint64(n) != got.Requests() {
		t.Errorf("counted %d requests, the service saw %d", got.Requests(), n)
	}
}
