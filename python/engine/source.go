package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/tools/overlay"
	"github.com/dsistore/dsistore/writer"
)

// sourceParams say what is read: paths, or the records that came with the request.
type sourceParams struct {
	URI      string   `json:"uri"`
	Table    string   `json:"table"` // of an overlay also table@branch
	Paths    []string `json:"paths"`
	Format   string   `json:"format"`
	Mapping  string   `json:"mapping"`
	DDL      string   `json:"ddl"`
	Memory   int64    `json:"memory"`
	Resident bool     `json:"resident"` // the records are in memory whether or not they are read
}

// records takes over the records that came with the request, and makes them what is read; nil: there are none.
func (p *sourceParams) records(ctx context.Context) *source.Records {
	c := callOf(ctx)
	if c.records == nil {
		return nil
	}
	in := source.NewRecords(c.records, p.Resident)
	c.records = nil
	p.Paths, p.Format = []string{"-"}, "arrow"
	return in
}

// orCanceled returns the report of an operation, or its error. An operation that was cancelled says so, and not how its
// parts ended.
func orCanceled[R any](ctx context.Context, report R, err error) (any, error) {
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return report, err
}

// ingestParams are those of `dsi ingest`.
type ingestParams struct {
	sourceParams
	SessionKey   string `json:"session_key"`
	TimeKey      string `json:"time_key"`
	PartitionBy  string `json:"partition_by"`
	Overwrite    bool   `json:"overwrite"`
	NewOnly      bool   `json:"new_only"`
	TakeCopies   bool   `json:"take_copies"`
	OnBadRow     string `json:"on_bad_row"`
	BadRowReport string `json:"bad_row_report"`
	Profile      string `json:"profile"`
	Init         bool   `json:"init"` // make the store in a directory that is not empty
}

// ingest runs an ingest, and answers with its report.
func (e *Engine) ingest(ctx context.Context, p *ingestParams) (any, error) {
	in := p.records(ctx)
	if in != nil {
		defer in.Close()
	}
	blobs, err := e.openStore(p.URI, storageOptions(ctx))
	if err != nil {
		return nil, usageError{err}
	}
	m := e.measured()
	// A store of its own, which the ingest may make: those that are kept read.
	blobs = m.Blobs(blobs)
	s, err := storage.Create(ctx, blobs, storage.Options{Init: p.Init})
	defer func() { m.CloseStore(blobs, s) }() // after s.Close
	if errors.Is(err, storage.ErrNoStore) {
		err = fmt.Errorf("%w, or pass init=True to keep a store beside what is there", err)
	}
	if err != nil {
		return nil, err
	}
	m.AddStore(s)
	defer s.Close()
	written := m.Ingest()
	opts := ingest.Options{
		Format: p.Format, MappingFile: p.Mapping, DDLFile: p.DDL, SessionKey: p.SessionKey, TimeKey: p.TimeKey,
		PartitionBy: p.PartitionBy, Overwrite: p.Overwrite, NewOnly: p.NewOnly, OnBadRow: ingest.BadRow(p.OnBadRow),
		BadRowReport:  p.BadRowReport,
		SourceOptions: sourceOptions(ctx),
		TakeCopies:    p.TakeCopies, Records: in, Options: writer.Options{Memory: p.Memory, Profile: p.Profile},
		Progress: func(now ingest.Progress) {
			callOf(ctx).progress.Store(&now)
			if now.Phase == ingest.PhaseWrite {
				written(now.Rows)
			}
		},
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
	if known := (*ingest.KnownSourceError)(nil); errors.As(err, &known) {
		err = knownError{known}
	}
	return orCanceled(ctx, report, err)
}

// A knownError is a KnownSourceError in words of Python.
type knownError struct{ *ingest.KnownSourceError }

func (e knownError) Error() string { return e.Advise("new_only=True", "overwrite=True") }

func (e knownError) Unwrap() error { return e.KnownSourceError }

// overlayParams are those of `dsi overlay add`, or with Extend of `dsi overlay extend`.
type overlayParams struct {
	sourceParams
	Overlay       string   `json:"overlay"`
	Key           []string `json:"key"`
	Features      []string `json:"features"`
	Exprs         []string `json:"exprs"`
	Over          []string `json:"over"`
	Label         bool     `json:"label"`
	MissingRows   string   `json:"missing_rows"`
	MissingLayers string   `json:"missing_layers"`
	Replace       bool     `json:"replace"`
	Extend        bool     `json:"extend"` // an overlay that is there
	usageParams
}

// policies are the words for missing-value policies. None is the first.
var policies = map[string]catalog.MissingPolicy{
	"": catalog.FallThrough, "fallthrough": catalog.FallThrough, "null": catalog.Null, "refuse": catalog.Refuse,
}

// overlay makes or extends an overlay, and answers with its report.
func (e *Engine) overlay(ctx context.Context, p *overlayParams) (any, error) {
	in := p.records(ctx)
	if in != nil {
		defer in.Close()
	}
	s, err := e.store(ctx, p.URI)
	if err != nil {
		return nil, err
	}
	opts := overlay.Options{
		From: p.Paths, Key: p.Key, Features: p.Features, Format: p.Format, MappingFile: p.Mapping, DDLFile: p.DDL,
		Records: in,
		Exprs:   p.Exprs, Over: p.Over, Replace: p.Replace, Memory: p.Memory, Usage: p.usage(),
		Progress: func(now overlay.Progress) {
			told := ingest.Progress{Phase: ingest.Phase(now.Phase)}
			if now.Phase == overlay.PhaseRead {
				told.Bytes, told.TotalBytes = now.Done, now.Total
			} else {
				told.Rows = now.Done
			}
			callOf(ctx).progress.Store(&told)
		},
	}
	if p.Label {
		opts.Role = catalog.RoleLabel
	}
	for _, x := range []struct {
		word string
		to   *catalog.MissingPolicy
	}{{p.MissingRows, &opts.MissingRows}, {p.MissingLayers, &opts.MissingLayers}} {
		var ok bool
		if *x.to, ok = policies[x.word]; !ok {
			return nil, usageError{fmt.Errorf("%q: want fallthrough, null or refuse", x.word)}
		}
	}
	if err := opts.Validate(); err != nil {
		return nil, usageError{err}
	}
	run := overlay.Add
	if p.Extend {
		run = overlay.Extend
	}
	report, err := run(ctx, s, p.Table, p.Overlay, opts)
	return orCanceled(ctx, report, err)
}
