package engine

import (
	"context"
	"encoding/json"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/selection"
)

// whichParams say which rows of a table's newest snapshot are meant.
type whichParams struct {
	URI        string `json:"uri"`
	Table      string `json:"table"`
	Filter     string `json:"filter,omitempty"`
	Partitions string `json:"partitions,omitempty"`
	Lists      string `json:"lists,omitempty"`       // joined by AND, OR and NOT
	SampleList string `json:"sample_list,omitempty"` // a name
	keyParams
	DryRun bool `json:"dry_run,omitempty"`
	accessParams
}

// keyParams are keys.
type keyParams struct {
	// KeyPaths are files of keys, KeyTexts keys; at most one of both is there.
	KeyPaths []string `json:"key_paths,omitempty"`
	KeyTexts []string `json:"key_texts,omitempty"`
	Key      string   `json:"key,omitempty"` // the feature that has them
	Memory   int64    `json:"memory,omitempty"`
}

func (p *keyParams) source() *selection.KeySource {
	return &selection.KeySource{Paths: p.KeyPaths, Given: p.KeyTexts, Feature: p.Key, Memory: p.Memory}
}

func (p *whichParams) query() *selection.Query {
	q := &selection.Query{Where: p.Filter, Partition: p.Partitions, Lists: p.Lists}
	if p.SampleList != "" {
		q.Lists = selection.ListName(p.SampleList)
	}
	if p.KeyPaths != nil || p.KeyTexts != nil {
		q.Keys = p.source()
	}
	return q
}

// tableOf returns a table.
func (e *Engine) tableOf(ctx context.Context, uri, table string) (*storage.Table, error) {
	s, err := e.store(ctx, uri)
	if err != nil {
		return nil, err
	}
	return s.Table(ctx, table)
}

// deleteRows answers with the report of a delete.
func (e *Engine) deleteRows(ctx context.Context, raw json.RawMessage) (any, error) {
	var p whichParams
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	t, err := e.tableOf(ctx, p.URI, p.Table)
	if err != nil {
		return nil, err
	}
	report, err := selection.Delete(ctx, t, p.query(), selection.Options{DryRun: p.DryRun, Read: reader.Options{Usage: p.options()}})
	if err != nil {
		return nil, unlessOfSystem(err)
	}
	return report, nil
}

// lookup answers with where the rows are that have one of some keys.
func (e *Engine) lookup(ctx context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		place
		keyParams
		accessParams
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	v, err := e.view(ctx, p.place)
	if err != nil {
		return nil, err
	}
	found, err := selection.Lookup(ctx, v, p.source(), reader.Options{Usage: p.options()})
	if err != nil {
		return nil, unlessOfSystem(err)
	}
	return found, nil
}

// samplesCreate answers with the report of a sample list that was made.
func (e *Engine) samplesCreate(ctx context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		whichParams
		Name    string `json:"name"`
		Replace bool   `json:"replace,omitempty"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	t, err := e.tableOf(ctx, p.URI, p.Table)
	if err != nil {
		return nil, err
	}
	report, err := selection.Create(ctx, t, p.Name, p.query(), p.Replace, selection.Options{DryRun: p.DryRun, Read: reader.Options{Usage: p.options()}})
	if err != nil {
		return nil, unlessOfSystem(err)
	}
	return report, nil
}

// samplesList answers with the sample lists of a snapshot, or with the one of a name.
func (e *Engine) samplesList(ctx context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		place
		Name string `json:"name,omitempty"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	snap, err := e.snapshot(ctx, p.place)
	if err != nil {
		return nil, err
	}
	lists, err := snap.SampleLists(ctx)
	if p.Name != "" {
		lists = make([]storage.SampleList, 1)
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

// samplesDrop answers with the number of the snapshot that has the list no more.
func (e *Engine) samplesDrop(ctx context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		URI   string `json:"uri"`
		Table string `json:"table"`
		Name  string `json:"name"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
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
