package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/writer"
)

// ingestParams are the parameters of an ingest: those of `dsi ingest`.
type ingestParams struct {
	URI          string   `json:"uri"`
	Table        string   `json:"table"`
	Paths        []string `json:"paths"`
	Format       string   `json:"format,omitempty"`
	Mapping      string   `json:"mapping,omitempty"`
	DDL          string   `json:"ddl,omitempty"`
	SessionKey   string   `json:"session_key,omitempty"`
	TimeKey      string   `json:"time_key,omitempty"`
	PartitionBy  string   `json:"partition_by,omitempty"`
	Memory       int64    `json:"memory,omitempty"`
	Overwrite    bool     `json:"overwrite,omitempty"`
	TakeCopies   bool     `json:"take_copies,omitempty"`
	OnBadRow     string   `json:"on_bad_row,omitempty"`
	BadRowReport string   `json:"bad_row_report,omitempty"`
	Profile      string   `json:"profile,omitempty"`
	Init         bool     `json:"init,omitempty"` // make the store in a directory that is not empty
}

// ingest runs an ingest of paths, and returns its report.
func (e *Engine) ingest(ctx context.Context, raw json.RawMessage) (any, error) {
	var p ingestParams
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	return e.runIngest(ctx, &p, nil)
}

// BeginIngest starts an ingest of the records that open gives before it returns, and takes them over; raw are the parameters of
// an ingest without paths. Wait and End take the number that it returns, and the answer is that of "ingest".
func (e *Engine) BeginIngest(raw []byte, open func() (source.RecordReader, error)) int64 {
	return e.beginRecords(open, func(ctx context.Context, in source.RecordReader) (any, error) {
		var p struct {
			ingestParams
			residentParam
		}
		records, err := takeRecords(raw, &p, &p.residentParam, in)
		if err != nil {
			return nil, err
		}
		defer records.Close()
		p.Paths, p.Format = []string{"-"}, "arrow"
		return e.runIngest(ctx, &p.ingestParams, records)
	})
}

// beginRecords starts a call that reads the records that open gives before this returns. run takes them over.
func (e *Engine) beginRecords(open func() (source.RecordReader, error), run func(context.Context, source.RecordReader) (any, error)) int64 {
	in, err := open()
	return e.begin(func(ctx context.Context) (any, error) {
		if err != nil {
			return nil, err
		}
		return run(ctx, in)
	})
}

// residentParam is a parameter of calls that read records.
type residentParam struct {
	Resident bool `json:"resident,omitempty"` // the records are in memory whether or not they are read
}

// takeRecords reads the parameters of a call into p, of which resident is a part, and takes its records over.
func takeRecords(raw []byte, p any, resident *residentParam, in source.RecordReader) (*source.Records, error) {
	if err := params(raw, p); err != nil {
		in.Release()
		return nil, err
	}
	return source.NewRecords(in, resident.Resident), nil
}

// runIngest runs an ingest, and returns its report. in, unless it is nil, is what "-" reads.
func (e *Engine) runIngest(ctx context.Context, p *ingestParams, in *source.Records) (any, error) {
	blobs, err := e.open(p.URI)
	if err != nil {
		return nil, usageError{err}
	}
	m := e.measured()
	// A store of its own, which the ingest may make: those that are kept read.
	s, err := storage.Create(ctx, m.Blobs(blobs), storage.Options{Init: p.Init})
	if errors.Is(err, storage.ErrNoStore) {
		err = fmt.Errorf("%w, or pass init=True to keep a store beside what is there", err)
	}
	if err != nil {
		return nil, err
	}
	m.AddStore(s)
	defer s.Close()
	opts := ingest.Options{
		Format: p.Format, MappingFile: p.Mapping, DDLFile: p.DDL, SessionKey: p.SessionKey, TimeKey: p.TimeKey, PartitionBy: p.PartitionBy, Overwrite: p.Overwrite, OnBadRow: ingest.BadRow(p.OnBadRow), BadRowReport: p.BadRowReport, TakeCopies: p.TakeCopies, Records: in,
		Options: writer.Options{Memory: p.Memory, Profile: p.Profile},
	}
	written := e.measured().Ingest()
	opts.Progress = func(now ingest.Progress) {
		tell(ctx, now)
		if now.Phase == ingest.PhaseWrite {
			written(now.Rows)
		}
	}
	if err := opts.Validate(); err != nil {
		return nil, usageError{err}
	}
	if t, err := s.NewTable(ctx, p.Table); err == nil { // else ingest says what is wrong
		// The order of packs is not worth an ingest.
		if r, err := ingest.RecentlyRead(ctx, t, ingest.PopularDays); err == nil && r != nil {
			opts.Popularity = r
		}
	}
	report, err := ingest.Run(ctx, s, p.Table, p.Paths, opts)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // one that was cancelled says so, and not how its parts ended
	}
	return report, err
}
