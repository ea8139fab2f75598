package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	_ "github.com/dsistore/dsistore/storage/object/gcs"
	_ "github.com/dsistore/dsistore/storage/object/s3"
)

func TestEraseVersions(t *testing.T) {
	server := objectserver.StartS3(t, "kept")
	testEraseVersions(t, server, "s3://kept/store", server.Options())
}

func TestEraseVersionsGCS(t *testing.T) {
	server := objectserver.StartGCS(t, "kept")
	testEraseVersions(t, server, "gs://kept/store", server.Options())
}

// versioned is a server whose buckets keep versions.
type versioned interface {
	KeepVersions(t testing.TB, bucket string)
	Versions(t testing.TB, bucket string) []objectserver.Version
	Bytes(t testing.TB, bucket string, v objectserver.Version) []byte
}

// testEraseVersions: in a bucket that keeps what was deleted, no version of any object has what was erased, of the
// table's objects that gc deleted before the erasure neither.
func testEraseVersions(t *testing.T, server versioned, uri string, options map[string]string) {
	if race.Enabled {
		t.Skip("not under the race detector: the clients' own tests are, and TestEraseHistory")
	}
	server.KeepVersions(t, "kept")
	blobs, err := object.OpenWith(uri, options)
	if err != nil {
		t.Fatal(err)
	}
	x := erasable(t, blobs, 1)
	again := x.options()
	again.Repack = true
	x.compact(again)
	_, err = x.table.Expire(t.Context(), gc.ExpireOptions{KeepLast: 1})
	x.check(err)
	_, err = x.store.GC(t.Context(), gc.Options{NoWait: true})
	x.check(err)
	person := "person-0003"
	having := func() (latest, old int) {
		for _, v := range server.Versions(t, "kept") {
			switch {
			case v.Mark || !strings.Contains(string(server.Bytes(t, "kept", v)), person):
			case v.Latest:
				latest++
			default:
				old++
			}
		}
		return latest, old
	}
	if latest, old := having(); latest == 0 || old == 0 {
		t.Fatalf("%d objects and %d older versions have the key: the test would see nothing", latest, old)
	}
	// What is kept of a table whose name begins with this one's is not touched.
	other := names.TableRoot("ads2")
	x.check(blobs.PutIfAbsent(t.Context(), other, []byte("x")))
	x.check(blobs.Delete(t.Context(), other))
	r, err := Erase(t.Context(), x.table, Erasure{Keys: sessionKeys(x, person), DryRun: true, Compact: x.options()})
	x.check(err)
	if latest, _ := having(); latest == 0 || !r.KeepsVersions {
		t.Errorf("a dry run left %d objects: %+v", latest, r)
	}
	r, err = Erase(t.Context(), x.table, Erasure{Keys: sessionKeys(x, person), Compact: x.options()})
	x.check(err)
	if !slices.ContainsFunc(server.Versions(t, "kept"), func(v objectserver.Version) bool {
		return v.Key == "store/"+other && !v.Mark
	}) {
		t.Error("what the bucket had kept of another table is gone")
	}
	x.forget(func(r testRow) bool { return r.Session == "person-0003" })
	if latest, old := having(); latest+old > 0 || r.Removed == 0 || r.Versions == 0 {
		t.Errorf("%d objects and %d older versions have it: %+v", latest, old, r)
	}
	x.verify("erased")

	// Nor of rows of which the table had nothing left.
	x.delete(x.people("person-0004"))
	again.DeletedShare = 1e-9
	x.compact(again)
	_, err = x.table.Expire(t.Context(), gc.ExpireOptions{KeepLast: 1})
	x.check(err)
	_, err = x.store.GC(t.Context(), gc.Options{NoWait: true})
	x.check(err)
	person = "person-0004"
	if _, old := having(); old == 0 {
		t.Fatal("no version has the key: the test would see nothing")
	}
	r, err = Erase(t.Context(), x.table, Erasure{Keys: sessionKeys(x, person), Compact: x.options()})
	x.check(err)
	if latest, old := having(); latest+old > 0 || r.Versions == 0 {
		t.Errorf("%d objects and %d older versions have it: %+v", latest, old, r)
	}
}

// softly is a store that keeps what is deleted, and nothing removes it earlier.
type softly struct{ object.Store }

func (softly) KeepsVersions(context.Context) (bool, error) {
	return true, fmt.Errorf("bucket: %w: it keeps what is deleted", object.ErrDenied)
}

func (softly) RemoveVersions(context.Context, string, func(string) bool) (n, bytes int64, _ error) {
	return 0, 0, object.ErrDenied
}

// TestEraseRefusedByTheStore: an erasure that the store cannot finish is refused before it begins, and so is its dry
// run.
func TestEraseRefusedByTheStore(t *testing.T) {
	x := erasable(t, softly{object.NewMemory()}, 1)
	before := x.latest().Info().Number
	for _, dry := range []bool{true, false} {
		_, err := Erase(t.Context(), x.table,
			Erasure{Keys: sessionKeys(x, "person-0003"), DryRun: dry, Compact: x.options()})
		if !errors.Is(err, object.ErrDenied) {
			t.Errorf("dry run %v: %v, want that it is refused", dry, err)
		}
	}
	if now := x.latest().Info().Number; now != before {
		t.Errorf("snapshot %d, was %d", now, before)
	}
}
