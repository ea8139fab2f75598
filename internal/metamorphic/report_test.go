package metamorphic

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dsistore/dsistore/tools/report"
)

// checkReport makes the report that dsistat prints and holds it to the model: what readers see, and that savings add up
// to the byte, whatever was done to the table.
func checkReport(w *world) error {
	if err := w.recorder.Flush(w.ctx); err != nil {
		return err
	}
	r, err := report.Build(w.ctx, w.store(), []string{tableName}, report.Options{Encodings: true})
	if err != nil {
		return err
	}
	t, s := &r.Tables[0], w.latest()
	snap, err := w.table().At(w.ctx, w.newest)
	if err != nil {
		return err
	}
	sum := int64(0)
	for _, c := range t.Savings.Causes {
		sum += c.Bytes
	}
	if want := int64(t.Savings.RawBytes) - int64(t.Savings.StoredBytes); sum != want ||
		t.Savings.StoredBytes != snap.Info().Bytes {
		return fmt.Errorf("savings come to %d, want %d - %d; the segments have %d bytes", sum, t.Savings.RawBytes,
			t.Savings.StoredBytes, snap.Info().Bytes)
	}
	names := []string{}
	for _, f := range t.Features {
		sum := int64(0)
		for _, n := range f.Saved {
			sum += n
		}
		if want := int64(f.RawBytes) - int64(f.StoredBytes); sum != want {
			return fmt.Errorf("savings of %s come to %d, want %d - %d", f.Name, sum, f.RawBytes, f.StoredBytes)
		}
		if f.Status == "" || f.Status == "deprecated" {
			names = append(names, f.Name)
		}
	}
	if want := slices.Sorted(maps.Keys(s.features)); !slices.Equal(names, want) {
		return fmt.Errorf("features %q, want %q", names, want)
	}
	if t.Summary.Rows != uint64(len(s.rows)) || t.Summary.Reads.Rows != w.rowsRead {
		return fmt.Errorf("%d rows, %d read: want %d, %d read", t.Summary.Rows, t.Summary.Reads.Rows, len(s.rows),
			w.rowsRead)
	}
	var branches, lists []string
	for _, b := range t.Health.Branches {
		branches = append(branches, b.Branch)
	}
	for _, l := range t.Health.Lists {
		lists = append(lists, l.List)
	}
	if !slices.Equal(branches, slices.Sorted(maps.Keys(s.branches))) ||
		!slices.Equal(lists, slices.Sorted(maps.Keys(s.lists))) {
		return fmt.Errorf("branches %q, sample lists %q", branches, lists)
	}
	return nil
}
