package engine

import (
	"context"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/selection"
)

// selectionParams say which rows of a table's newest snapshot are selected.
type selectionParams struct {
	URI        string `json:"uri"`
	Table      string `json:"table"`
	Filter     string `json:"filter"`
	Partitions string `json:"partitions"`
	Lists      string `json:"lists"`       // joined by AND, OR and NOT
	SampleList string `json:"sample_list"` // a name
	keyParams
	DryRun bool `json:"dry_run"`
	usageParams
}

// keyParams are keys: KeyPaths are files of keys, KeyTexts keys; at most one of both is there.
type keyParams struct {
	KeyPaths []string `json:"key_paths"`
	KeyTexts []string `json:"key_texts"`
	Key      string   `json:"key"` // the feature that has them
	Memory   int64    `json:"memory"`
}

func (p *keyParams) source() *selection.KeySource {
	return &selection.KeySource{Paths: p.KeyPaths, Given: p.KeyTexts, Feature: p.Key, Memory: p.Memory}
}

func (p *selectionParams) query() *selection.Query {
	q := &selection.Query{Where: p.Filter, Partition: p.Partitions, Lists: p.Lists}
	if p.SampleList != "" {
		q.Lists = selection.ListName(p.SampleList)
	}
	if p.KeyPaths != nil || p.KeyTexts != nil {
		q.Keys = p.source()
	}
	return q
}

func (p *selectionParams) options() selection.Options {
	return selection.Options{DryRun: p.DryRun, Read: reader.Options{Usage: p.usage()}}
}

// report returns a report of what was asked, or its error.
func report[R any](r R, err error) (any, error) {
	if err != nil {
		return nil, unlessOfSystem(err)
	}
	return r, nil
}

// deleteRows answers with the report of a delete.
func (e *Engine) deleteRows(ctx context.Context, p *selectionParams) (any, error) {
	t, err := e.tableOf(ctx, p.URI, p.Table)
	if err != nil {
		return nil, err
	}
	return report(selection.Delete(ctx, t, p.query(), p.options()))
}

type lookupParams struct {
	tableRef
	keyParams
	usageParams
}

// lookup answers with where the rows are that have one of some keys.
func (e *Engine) lookup(ctx context.Context, p *lookupParams) (any, error) {
	v, err := e.view(ctx, &p.tableRef)
	if err != nil {
		return nil, err
	}
	return report(selection.Lookup(ctx, v, p.source(), reader.Options{Usage: p.usage()}))
}

type createParams struct {
	selectionParams
	Name    string `json:"name"`
	Replace bool   `json:"replace"`
}

// samplesCreate answers with the report of a sample list that was made.
func (e *Engine) samplesCreate(ctx context.Context, p *createParams) (any, error) {
	t, err := e.tableOf(ctx, p.URI, p.Table)
	if err != nil {
		return nil, err
	}
	return report(selection.Create(ctx, t, p.Name, p.query(), p.Replace, p.options()))
}

type listParams struct {
	tableRef
	Name string `json:"name"`
}

// samplesList answers with the sample lists of a snapshot, or with the one of a name.
func (e *Engine) samplesList(ctx context.Context, p *listParams) (any, error) {
	snap, err := e.snapshot(ctx, &p.tableRef)
	if err != nil {
		return nil, err
	}
	lists, err := snap.SampleLists(ctx)
	if p.Name != "" {
		lists = make([]catalog.SampleList, 1)
		lists[0], err = snap.SampleList(ctx, p.Name)
	}
	if err != nil {
		return nil, err
	}
	out := []*selection.ListInfo{}
	for _, l := range lists {
		info, _, err := selection.Describe(ctx, snap, l)
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, nil
}

// samplesDrop answers with the number of the first snapshot without the list.
func (e *Engine) samplesDrop(ctx context.Context, p *listParams) (any, error) {
	t, err := e.tableOf(ctx, p.URI, p.Table)
	if err != nil {
		return nil, err
	}
	made, err := selection.Drop(ctx, t, p.Name)
	if err != nil {
		return nil, err
	}
	return made.Info().Number, nil
}
