package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/jsontext"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// tableRef is how every request names a table: Snapshot and Time select a version, at most one of them; neither: the
// newest.
type tableRef struct {
	URI      string `json:"uri"`
	Table    string `json:"table"`
	Snapshot uint64 `json:"snapshot,omitempty"`
	Time     string `json:"time,omitempty"` // RFC 3339
	// Branch is what is read instead of a version. With Snapshot it is what the branch read when it was opened:
	// Overlays, the lowest first, and List.
	Branch   string `json:"branch,omitempty"`
	Overlays []pin  `json:"overlays,omitempty"`
	List     *pin   `json:"list,omitempty"`
}

// pin is a storage.Pin as Python keeps it.
type pin struct {
	Name     string `json:"name"`
	Snapshot uint64 `json:"snapshot"`
}

func (e *Engine) snapshot(ctx context.Context, p *tableRef) (*storage.Snapshot, error) {
	if p.Snapshot != 0 && p.Time != "" {
		return nil, usageError{fmt.Errorf("version: a snapshot and a time: want one")}
	}
	if p.Snapshot != 0 {
		return e.snapshotAt(ctx, p.URI, p.Table, p.Snapshot)
	}
	s, err := e.store(ctx, p.URI)
	if err != nil {
		return nil, err
	}
	if p.Time == "" {
		_, snap, err := s.Newest(ctx, p.Table)
		return snap, err
	}
	at, err := time.Parse(time.RFC3339Nano, p.Time)
	if err != nil {
		return nil, usageError{fmt.Errorf("version: time %q: want RFC 3339", p.Time)}
	}
	t, err := s.Table(ctx, p.Table)
	if err != nil {
		return nil, err
	}
	return t.AsOf(ctx, at)
}

// view returns what is read of a table.
func (e *Engine) view(ctx context.Context, p *tableRef) (*storage.View, error) {
	if p.Snapshot == 0 {
		if now, _, err := e.branch(ctx, p); err != nil {
			return nil, err
		} else if now != nil {
			p = now
		}
	}
	snap, err := e.snapshot(ctx, p)
	if err != nil {
		return nil, err
	}
	v := &storage.View{Snapshot: snap, Branch: p.Branch}
	at := func(number uint64) (*storage.Snapshot, error) {
		if number == snap.Info().Number {
			return snap, nil
		}
		return e.snapshotAt(ctx, p.URI, p.Table, number)
	}
	for _, o := range p.Overlays {
		in, err := at(o.Snapshot)
		if err != nil {
			return nil, err
		}
		overlay, err := in.Overlay(ctx, o.Name)
		if err != nil {
			return nil, err
		}
		v.Overlays = append(v.Overlays, storage.ViewOverlay{Overlay: overlay, In: in})
	}
	if p.List != nil {
		if v.ListIn, err = at(p.List.Snapshot); err != nil {
			return nil, err
		}
		v.List = p.List.Name
	}
	return v, nil
}

// branch returns what a branch reads now, and its snapshot; nil: p names no branch.
func (e *Engine) branch(ctx context.Context, p *tableRef) (*tableRef, *storage.Snapshot, error) {
	_, branch := storage.SplitRef(p.Table)
	if p.Branch == "" && branch == "" {
		return nil, nil, nil
	}
	s, err := e.store(ctx, p.URI)
	if err != nil {
		return nil, nil, err
	}
	var t *storage.Table
	if p.Branch != "" {
		branch = p.Branch
		t, err = s.Table(ctx, p.Table)
	} else {
		t, branch, err = s.OpenRef(ctx, p.Table)
	}
	if err != nil || branch == "" { // a table may have an @ in its name
		return nil, nil, err
	}
	if p.Snapshot != 0 || p.Time != "" {
		return nil, nil, usageError{fmt.Errorf("version: branch %s has its own: want one or the other", branch)}
	}
	v, err := t.OpenBranch(ctx, branch)
	if err != nil {
		return nil, nil, err
	}
	out := &tableRef{URI: p.URI, Table: t.Name(), Snapshot: v.Snapshot.Info().Number, Branch: branch}
	for _, o := range v.Overlays {
		e.keepSnapshot(ctx, p.URI, o.In)
		out.Overlays = append(out.Overlays, pin{o.Name, o.In.Info().Number})
	}
	if v.List != "" {
		e.keepSnapshot(ctx, p.URI, v.ListIn)
		out.List = &pin{v.List, v.ListIn.Info().Number}
	}
	return out, v.Snapshot, nil
}

type storeParams struct {
	URI string `json:"uri"`
}

func (e *Engine) tables(ctx context.Context, p *storeParams) (any, error) {
	s, err := e.store(ctx, p.URI)
	if err != nil {
		return nil, err
	}
	names, err := s.Tables(ctx)
	if names == nil {
		names = []string{}
	}
	return names, err
}

// snapshotInfo is a snapshot as Python gets it.
type snapshotInfo struct {
	Number    uint64 `json:"number"`
	Time      string `json:"time"`
	Operation string `json:"operation"`
	Rows      uint64 `json:"rows"` // that readers see
	Segments  uint64 `json:"segments"`
	Bytes     uint64 `json:"bytes"`
	Features  uint64 `json:"features"`
}

// appendJSON writes i as encoding/json would.
func (i snapshotInfo) appendJSON(b []byte) []byte {
	b = jsontext.AppendUint(append(b, '{'), "number", i.Number)
	b = jsontext.AppendText(b, "time", i.Time)
	b = jsontext.AppendText(b, "operation", i.Operation)
	b = jsontext.AppendUint(b, "rows", i.Rows)
	b = jsontext.AppendUint(b, "segments", i.Segments)
	b = jsontext.AppendUint(b, "bytes", i.Bytes)
	return append(jsontext.AppendUint(b, "features", i.Features), '}')
}

func infoOf(i snapshot.Info) snapshotInfo {
	return snapshotInfo{
		Number: i.Number, Time: i.Time.UTC().Format(time.RFC3339Nano), Operation: i.Operation, Rows: i.LiveRows(),
		Segments: i.Segments, Bytes: i.Bytes, Features: i.Features,
	}
}

// table answers with the snapshot that a table is opened at, not with one that has expired: an erasure may have removed
// its data. Tables that were opened before still read it, see at.
func (e *Engine) table(ctx context.Context, p *tableRef) (any, error) {
	branch, snap, err := e.branch(ctx, p)
	if err == nil && branch == nil {
		snap, err = e.snapshot(ctx, p)
	}
	if err == nil && p.Snapshot != 0 {
		if gone := snap.Unexpired(ctx); errors.Is(gone, storage.ErrNotFound) {
			err = gone
		}
	}
	if err != nil {
		return nil, err
	}
	e.keepSnapshot(ctx, p.URI, snap) // it is asked for by its number from now on
	return tableAnswer{infoOf(snap.Info()), branch}, nil
}

// rows answers with how many rows a scan gives.
func (e *Engine) rows(ctx context.Context, p *tableRef) (any, error) {
	view, err := e.view(ctx, p)
	if err != nil {
		return nil, err
	}
	m, err := reader.Matching(ctx, view.Snapshot, reader.PlanOptions{}, reader.LayoutOptions{View: view})
	if err != nil {
		return nil, err
	}
	return m.Rows, nil
}

// tableAnswer is a table as Python gets it: a snapshot, and of a branch what it reads.
type tableAnswer struct {
	snapshotInfo
	Ref *tableRef `json:"ref,omitempty"`
}

// appendJSON writes a as encoding/json would.
func (a tableAnswer) appendJSON(b []byte) []byte {
	b = a.snapshotInfo.appendJSON(b)
	if a.Ref == nil {
		return b
	}
	text, err := json.Marshal(a.Ref)
	if err != nil {
		panic(err) // it is numbers and strings
	}
	return append(append(jsontext.AppendMember(b[:len(b)-1], "ref"), text...), '}')
}

func (e *Engine) listSnapshots(ctx context.Context, p *tableRef) (any, error) {
	t, err := e.tableOf(ctx, p.URI, p.Table)
	if err != nil {
		return nil, err
	}
	all, err := t.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]snapshotInfo, len(all))
	for i := range all {
		out[i] = infoOf(all[i])
	}
	return out, nil
}

// featureInfo is a feature as Python gets it. What most features do not have is left out where it is empty: a plan may
// have thousands of them.
type featureInfo struct {
	Name         string `json:"name"`
	ID           string `json:"id"` // empty: a partition key
	Kind         string `json:"kind"`
	Elem         string `json:"elem"`
	Role         string `json:"role"`
	Score        string `json:"score,omitempty"`
	Logical      string `json:"logical,omitempty"`
	OriginColumn string `json:"origin_column,omitempty"`
	OriginKey    string `json:"origin_key,omitempty"`
	Dim          uint32 `json:"dim,omitempty"`
}

// appendJSON writes i as encoding/json would.
func (i *featureInfo) appendJSON(b []byte) []byte {
	b = append(b, '{')
	for _, m := range [...]struct {
		name, value string
		optional    bool
	}{
		{"name", i.Name, false}, {"id", i.ID, false}, {"kind", i.Kind, false}, {"elem", i.Elem, false},
		{"role", i.Role, false}, {"score", i.Score, true}, {"logical", i.Logical, true},
		{"origin_column", i.OriginColumn, true}, {"origin_key", i.OriginKey, true},
	} {
		if m.value != "" || !m.optional {
			b = jsontext.AppendText(b, m.name, m.value)
		}
	}
	if i.Dim != 0 {
		b = jsontext.AppendUint(b, "dim", uint64(i.Dim))
	}
	return append(b, '}')
}

func featureOf(f catalog.Feature) featureInfo {
	i := featureInfo{
		Name: f.Name, Kind: f.Type.Kind.String(), Dim: f.Type.Dim, Role: f.Role.String(),
		Logical: f.Logical, OriginColumn: f.OriginColumn, OriginKey: f.OriginKey,
	}
	if f.Type.Elem != vector.NoElem {
		i.Elem = f.Type.Elem.String()
	}
	if f.Type.Score != vector.NoElem {
		i.Score = f.Type.Score.String()
	}
	if reader.IsPartitionKey(f) {
		i.Role = "partition key"
		return i
	}
	i.ID = fmt.Sprintf("%016x", uint64(f.ID))
	return i
}

type featuresParams struct {
	tableRef
	Features []string `json:"features"`
	Overlay  []string `json:"overlay"`
}

func (e *Engine) features(ctx context.Context, p *featuresParams) (any, error) {
	view, err := e.view(ctx, &p.tableRef)
	if err != nil {
		return nil, err
	}
	plan, err := reader.NewViewPlan(ctx, view, reader.PlanOptions{Features: p.Features, Overlays: p.Overlay})
	if err != nil {
		return nil, readToo(err)
	}
	return featuresOf(plan.Features), nil
}

func featuresOf(features []catalog.Feature) []featureInfo {
	out := make([]featureInfo, len(features))
	for i, f := range features {
		out[i] = featureOf(f)
	}
	return out
}
