package gcs_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
	_ "github.com/dsistore/dsistore/storage/object/gcs"
)

// Objects of other programs are read by any key, in the version that was described.
func TestBucket(t *testing.T) {
	server := objectserver.StartGCS(t, "dumps")
	ctx := t.Context()
	keys := []string{"a b/ds=2026-11-01/part 0%3A.parquet", "a b/ds=2026-11-01/é", "a b/_SUCCESS", "top"}
	for _, k := range keys {
		server.Put(t, "dumps", k, []byte("bytes of "+k))
	}
	b, err := object.OpenBucket("gs", "dumps", server.Options())
	must(t, err)
	var got []string
	for info, err := range b.List(ctx, "a b/") {
		must(t, err)
		got = append(got, info.Name)
		stat, err := b.Stat(ctx, info.Name)
		must(t, err)
		if stat != info || info.Version == "" {
			t.Errorf("listed %+v, described %+v", info, stat)
		}
		p := make([]byte, info.Size-9)
		must(t, b.ReadAt(ctx, info, p, 9))
		if string(p) != info.Name {
			t.Errorf("%s: %q", info.Name, p)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{keys[2], keys[0], keys[1]}) {
		t.Errorf("%q", got)
	}
	got = nil
	for name, err := range b.Names(ctx, "a b/") {
		must(t, err)
		got = append(got, name)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"_SUCCESS", "ds=2026-11-01/"}) {
		t.Errorf("%q", got)
	}

	before, err := b.Stat(ctx, "top")
	must(t, err)
	server.Put(t, "dumps", "top", bytes.Repeat([]byte("x"), 100))
	if err := b.ReadAt(ctx, before, make([]byte, 5), 0); !errors.Is(err, object.ErrChanged) {
		t.Errorf("replaced: %v", err)
	}
	if _, err := b.Stat(ctx, "none"); !errors.Is(err, object.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
	if err := b.ReadAt(ctx, object.Info{Name: "none"}, make([]byte, 5), 0); !errors.Is(err, object.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
}
