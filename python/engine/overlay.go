package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/tools/overlay"
)

// overlayParams are the parameters of the making of an overlay: those of `dsi overlay add`, or with Extend of `dsi overlay extend`.
type overlayParams struct {
	URI           string   `json:"uri"`
	Table         string   `json:"table"` // or table@branch
	Overlay       string   `json:"overlay"`
	Paths         []string `json:"paths,omitempty"`
	Key           []string `json:"key,omitempty"`
	Features      []string `json:"features,omitempty"`
	Format        string   `json:"format,omitempty"`
	Mapping       string   `json:"mapping,omitempty"`
	DDL           string   `json:"ddl,omitempty"`
	Exprs         []string `json:"exprs,omitempty"`
	Over          []string `json:"over,omitempty"`
	Label         bool     `json:"label,omitempty"`
	MissingRows   string   `json:"missing_rows,omitempty"`
	MissingLayers string   `json:"missing_layers,omitempty"`
	Replace       bool     `json:"replace,omitempty"`
	Extend        bool     `json:"extend,omitempty"` // one that is there
	Memory        int64    `json:"memory,omitempty"`
	accessParams
}

// overlay makes an overlay from paths or expressions, and returns its report.
func (e *Engine) overlay(ctx context.Context, raw json.RawMessage) (any, error) {
	var p overlayParams
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	return e.runOverlay(ctx, &p, nil)
}

// BeginOverlay starts the making of an overlay from the records that open gives before it returns, and takes them over; raw are the
// parameters without paths. Wait and End take the number that it returns, and the answer is that of "overlay".
func (e *Engine) BeginOverlay(raw []byte, open func() (source.RecordReader, error)) int64 {
	return e.beginRecords(open, func(ctx context.Context, in source.RecordReader) (any, error) {
		var p struct {
			overlayParams
			residentParam
		}
		records, err := takeRecords(raw, &p, &p.residentParam, in)
		if err != nil {
			return nil, err
		}
		defer records.Close()
		p.Paths, p.Format = []string{"-"}, "arrow"
		return e.runOverlay(ctx, &p.overlayParams, records)
	})
}

// policies are the words for missing-value policies. None is the first.
var policies = map[string]storage.MissingPolicy{
	"": storage.FallThrough, "fallthrough": storage.FallThrough, "null": storage.Null, "refuse": storage.Refuse,
}

// runOverlay makes an overlay, and returns its report. in, unless it is nil, is what "-" reads.
func (e *Engine) runOverlay(ctx context.Context, p *overlayParams, in *source.Records) (any, error) {
	s, err := e.store(ctx, p.URI)
	if err != nil {
		return nil, err
	}
	opts := overlay.Options{
		From: p.Paths, Key: p.Key, Features: p.Features, Format: p.Format, MappingFile: p.Mapping, DDLFile: p.DDL, Records: in,
		Exprs: p.Exprs, Over: p.Over, Replace: p.Replace, Memory: p.Memory, Usage: p.options(),
		Progress: func(now overlay.Progress) { tell(ctx, overlayProgress(now)) },
	}
	if p.Label {
		opts.Role = storage.RoleLabel
	}
	for _, x := range []struct {
		word string
		to   *storage.MissingPolicy
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
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // one that was cancelled says so, and not how its parts ended
	}
	return report, err
}

// overlayProgress says how far the making of an overlay is in the words of an ingest.
func overlayProgress(p overlay.Progress) ingest.Progress {
	out := ingest.Progress{Phase: ingest.Phase(p.Phase)}
	if p.Phase == overlay.PhaseRead {
		out.Bytes, out.TotalBytes = p.Done, p.Total
	} else {
		out.Rows = p.Done
	}
	return out
}
