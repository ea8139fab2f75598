package workload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A Summary says what Generate wrote.
type Summary struct {
	Rows     int64      `json:"rows"`
	Features int        `json:"features"`
	Sessions int64      `json:"sessions"`
	RawBytes int64      `json:"raw_bytes"` // see Stats.RawBytes
	Bytes    int64      `json:"bytes"`     // of all files
	Files    []FileInfo `json:"files"`
	Stats    Stats      `json:"stats"`
}

// FileInfo is one file that Generate wrote.
type FileInfo struct {
	Path  string `json:"path"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// Generate writes the table that o describes under dir, which it makes: part-00000.parquet and so on, in directories
// ds=YYYY-MM-DD/hr=HH where o asks for partitions. A file appears under its name only when it is whole. When Generate
// fails, the files it had finished stay.
func Generate(ctx context.Context, dir string, o Options) (Summary, error) {
	t, err := NewTruth(o)
	if err != nil {
		return Summary{}, err
	}
	o = t.Options()
	s := Summary{Rows: o.Rows, Features: len(t.features)}
	g := &generator{truth: t, tally: newTally(t.features), total: o.Rows * int64(len(t.features))}
	first := int64(0)
	for i := 0; i < len(t.windows); {
		j, rows := i, int64(0)
		for ; j < len(t.windows) && t.windows[j].partition == t.windows[i].partition; j++ {
			rows += int64(t.windows[j].rows)
		}
		sub := dir
		if o.Partitions > 0 {
			sub = filepath.Join(dir, partitionPath(o.FirstHour+t.windows[i].partition))
		}
		for f := range int64(o.Files) {
			lo, hi := rows*f/int64(o.Files), rows*(f+1)/int64(o.Files)
			info, err := g.file(ctx, filepath.Join(sub, fmt.Sprintf("part-%05d.parquet", f)), first+lo, first+hi)
			if err != nil {
				return s, err
			}
			s.Files = append(s.Files, info)
			s.Bytes += info.Bytes
		}
		first += rows
		i = j
	}
	s.Stats = g.tally.stats(o.Rows)
	s.Sessions, s.RawBytes = g.tally.sessions, g.tally.rawBytes
	return s, nil
}

func partitionPath(hour int) string {
	at := time.UnixMilli(firstMillis + int64(hour)*hourMillis).UTC()
	return filepath.Join(at.Format("ds=2006-01-02"), at.Format("hr=15"))
}

// A generator writes files of a table one after another.
type generator struct {
	truth *Truth
	tally *tally
	done  int64
	total int64
}

func (g *generator) progress(values int64) {
	g.done += values
	if p := g.truth.options.Progress; p != nil {
		p(g.done, g.total)
	}
}

// file writes rows [from, to) to path.
func (g *generator) file(ctx context.Context, path string, from, to int64) (info FileInfo, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return info, err
	}
	tmp, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp"),
		os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return info, err
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	if err := g.write(ctx, tmp, from, to); err != nil {
		return info, fmt.Errorf("%s: %w", path, err)
	}
	st, err := tmp.Stat()
	if err != nil {
		return info, err
	}
	if err := tmp.Close(); err != nil {
		return info, err
	}
	return FileInfo{Path: path, Rows: to - from, Bytes: st.Size()}, os.Rename(tmp.Name(), path)
}

// rowGroups calls each for every row group of rows [from, to): runs of one window of at most Options.RowGroupRows.
func (g *generator) rowGroups(from, to int64, each func(from, to int64) error) error {
	for from < to {
		w := g.truth.enter(from)
		end := min(to, w.first+int64(w.rows), from+int64(g.truth.options.RowGroupRows))
		if err := each(from, end); err != nil {
			return err
		}
		from = end
	}
	return nil
}
