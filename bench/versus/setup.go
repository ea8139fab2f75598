package versus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
)

// Table is the name of the table that Ingest makes.
const Table = "workload"

// A Dump is generated Parquet on disk.
type Dump struct {
	Options workload.Options `json:"-"`
	Dir     string           `json:"dir"`
	workload.Summary
}

// Paths returns the dump's files in the order of its rows.
func (d *Dump) Paths() []string {
	var out []string
	for _, f := range d.Files {
		out = append(out, f.Path)
	}
	return out
}

// Generate makes the table of o in dir, or finds it there whole: summary.json beside the files is written last.
func Generate(ctx context.Context, dir string, o workload.Options) (*Dump, error) {
	t, err := workload.NewTruth(o)
	if err != nil {
		return nil, err
	}
	d := &Dump{Options: t.Options(), Dir: dir}
	key := d.Options
	key.Progress = nil
	asked := fmt.Sprintf("version %d %+v", workload.Version, key)
	marker := filepath.Join(dir, "_summary.json")
	var kept struct {
		Asked   string
		Summary workload.Summary
	}
	if data, err := os.ReadFile(marker); err == nil && json.Unmarshal(data, &kept) == nil && kept.Asked == asked {
		d.Summary = kept.Summary
		return d, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if d.Summary, err = workload.Generate(ctx, dir, o); err != nil {
		return nil, err
	}
	kept.Asked, kept.Summary = asked, d.Summary
	data, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	return d, os.WriteFile(marker, data, 0o666)
}

// Ingest makes a new store in dir from the dump, or from o.Records, clustered by session, and says what ingest
// reported.
func Ingest(ctx context.Context, dir string, d *Dump, o ingest.Options) (ingest.Report, error) {
	if err := os.RemoveAll(dir); err != nil {
		return ingest.Report{}, err
	}
	s, err := OpenStore(ctx, dir)
	if err != nil {
		return ingest.Report{}, err
	}
	r, err := IngestInto(ctx, s, d, o)
	return r, errors.Join(err, s.Close())
}

// IngestInto makes the table in a store that has none of its name, and does the same.
func IngestInto(ctx context.Context, s *storage.Store, d *Dump, o ingest.Options) (ingest.Report, error) {
	o.SessionKey, o.TimeKey = workload.SessionColumn, workload.TimeColumn
	paths := d.Paths()
	if o.Records != nil {
		paths = []string{"-"}
	}
	return ingest.Run(ctx, s, Table, paths, o)
}

// OpenStore opens the store in a directory.
func OpenStore(ctx context.Context, dir string) (*storage.Store, error) {
	blobs, err := object.NewLocal(dir)
	if err != nil {
		return nil, err
	}
	return storage.Create(ctx, blobs, storage.Options{})
}

// StoredBytes returns the bytes of all objects.
func StoredBytes(ctx context.Context, blobs object.Store) (n int64, err error) {
	for info, err := range blobs.List(ctx, "", "") {
		if err != nil {
			return 0, err
		}
		n += info.Size
	}
	return n, nil
}

// Project chooses about a share of the sparse and dense features, spread over all families: every 1/share-th one from
// the seed's on, embeddings left out.
func Project(t *workload.Truth, share float64, seed uint64) ([]workload.Feature, error) {
	if share <= 0 || share > 1 {
		return nil, fmt.Errorf("share %v: want more than 0 and at most 1", share)
	}
	var all, out []workload.Feature
	for _, f := range t.Features() {
		if f.MapColumn() != "" {
			all = append(all, f)
		}
	}
	want := max(int(share*float64(len(all))+0.5), 1)
	for i := range want {
		// The offset, below one step, moves the whole comb.
		step := float64(len(all)) / float64(want)
		out = append(out, all[min(int((float64(i)+float64(seed%97)/97)*step), len(all)-1)])
	}
	return out, nil
}
