package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

// An overtaken store calls a function before the first snapshot is put.
type overtaken struct {
	object.Store
	put func()
}

func (o *overtaken) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if f := o.put; f != nil && strings.Contains(name, "/snapshots/") {
		o.put = nil
		f()
	}
	return o.Store.PutIfAbsent(ctx, name, data)
}

// TestTwoFirstIngests: two ingests make a table at the same time. The one that comes second is refused unless its rows
// are arranged by the keys that the first has given the table, and leaves nothing behind.
func TestTwoFirstIngests(t *testing.T) {
	const rows = `{"u":3,"v":1,"ds":"x","c":"y"}` + "\n" + `{"u":1,"v":9,"ds":"x","c":"z"}` + "\n"
	for _, c := range []struct {
		what          string
		first, second Options // the first to commit
		refused       string  // what the second is told; empty: it succeeds
	}{
		{"the same keys", Options{PartitionBy: "ds", SessionKey: "u"}, Options{PartitionBy: "ds", SessionKey: "u"}, ""},
		{"partition keys", Options{PartitionBy: "c"}, Options{PartitionBy: "ds"},
			"the table is partitioned by (c), and the rows of the change are partitioned by (ds)"},
		{"partitioned by one", Options{PartitionBy: "c"}, Options{}, "the table is partitioned by (c)"},
		{"partitioned by the other", Options{}, Options{PartitionBy: "c"}, "the table is partitioned by nothing"},
		{"session key of one", Options{SessionKey: "u"}, Options{}, "the table has the session key u"},
		{"other session keys", Options{SessionKey: "u"}, Options{SessionKey: "v"}, "the table has the session key u"},
		{"session key of the other", Options{}, Options{SessionKey: "u"},
			"feature u is a feature in the table and a session key in the change"},
		{"time key of one", Options{TimeKey: "u"}, Options{}, "the table has the time key u"},
	} {
		t.Run(c.what, func(t *testing.T) {
			ctx := t.Context()
			w := &overtaken{Store: object.NewMemory()}
			s, err := storage.Create(ctx, w, storage.Options{})
			if err != nil {
				t.Fatal(err)
			}
			run := func(name string, opts Options) error {
				path := filepath.Join(t.TempDir(), name)
				// Other bytes than those of the other ingest, so that it is another source.
				text := rows + strings.Replace(rows, "3", map[string]string{"1.jsonl": "4", "2.jsonl": "5"}[name], 1)
				if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
				_, err := Run(ctx, s, "t", []string{path}, opts)
				return err
			}
			var objects int
			w.put = func() {
				if err := run("1.jsonl", c.first); err != nil {
					t.Error(err)
				}
				tab, err := s.Table(ctx, "t")
				if err != nil {
					t.Error(err)
					return
				}
				snap, err := tab.Latest(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				segments, err := snap.Segments(ctx, nil)
				if err != nil {
					t.Error(err)
				}
				objects = len(segments)
			}
			err = run("2.jsonl", c.second)
			if c.refused == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, storage.ErrConflict) || !strings.Contains(err.Error(), c.refused) {
				t.Fatalf("%v: want a conflict: %s", err, c.refused)
			}
			for info, err := range w.List(ctx, "", "") {
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasSuffix(info.Name, "/index.sst") {
					objects--
				}
			}
			if objects != 0 {
				t.Fatalf("%d segments are left that no snapshot names", -objects)
			}
		})
	}
}
