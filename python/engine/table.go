package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/jsontext"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
)

// place is how every request names a table: Snapshot and Time select a version, at most one of them; neither: the latest.
type place struct {
	URI      string `json:"uri"`
	Table    string `json:"table"`
	Snapshot uint64 `json:"snapshot,omitempty"`
	Time     string `json:"time,omitempty"` // RFC 3339
	// Branch is what is read instead of a version. With Snapshot it is what the branch read when it was opened: Overlays, the lowest first,
	// and List.
	Branch   string `json:"branch,omitempty"`
	Overlays []pin  `json:"overlays,omitempty"`
	List     *pin   `json:"list,omitempty"`
}

// pin is a storage.Pin as Python keeps it.
type pin struct {
	Name     string `json:"name"`
	Snapshot uint64 `json:"snapshot"`
}

// placeFields is the part of bound.fields that is p's. It is no method, which whatever embeds a place would have too.
func placeFields(p *place) map[string]any {
	return map[string]any{
		"uri": &p.URI, "table": &p.Table, "snapshot": &p.Snapshot, "time": &p.Time,
		"branch": &p.Branch, "overlays": &p.Overlays, "list": &p.List,
	}
}

func (e *Engine) snapshot(ctx context.Context, p place) (*storage.Snapshot, error) {
	if p.Snapshot != 0 && p.Time != "" {
		return nil, usageError{fmt.Errorf("version: a snapshot and a time: want one")}
	}
	if p.Snapshot != 0 {
		return e.at(ctx, p.URI, p.Table, p.Snapshot)
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

// view returns what is read of a place.
func (e *Engine) view(ctx context.Context, p place) (*storage.View, error) {
	if p.Snapshot == 0 {
		if now, _, err := e.branch(ctx, p); err != nil {
			return nil, err
		} else if now != nil {
			p = *now
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
		return e.at(ctx, p.URI, p.Table, number)
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

// branch returns the place that stands for what a branch reads now, and its snapshot; nil: p names none.
func (e *Engine) branch(ctx context.Context, p place) (*place, *storage.Snapshot, error) {
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
	out := &place{URI: p.URI, Table: t.Name(), Snapshot: v.Snapshot.Info().Number, Branch: branch}
	for _, o := range v.Overlays {
		e.keepSnapshot(p.URI, o.In)
		out.Overlays = append(out.Overlays, pin{o.Name, o.In.Info().Number})
	}
	if v.List != "" {
		e.keepSnapshot(p.URI, v.ListIn)
		out.List = &pin{v.List, v.ListIn.Info().Number}
	}
	return out, v.Snapshot, nil
}

func (e *Engine) tables(ctx context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		URI string `json:"uri"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
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

func infoOf(i storage.SnapshotInfo) snapshotInfo {
	return snapshotInfo{
		Number: i.Number, Time: i.Time.UTC().Format(time.RFC3339Nano), Operation: i.Operation, Rows: i.LiveRows(),
		Segments: i.Segments, Bytes: i.Bytes, Features: i.Features,
	}
}

type tableParams struct{ place }

func (p *tableParams) fields() map[string]any { return placeFields(&p.place) }

func (e *Engine) table(ctx context.Context, raw json.RawMessage) (any, error) {
	var p tableParams
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	out := tableAnswer{}
	branch, snap, err := e.branch(ctx, p.place)
	if err == nil && branch == nil {
		snap, err = e.snapshot(ctx, p.place)
	}
	if err != nil {
		return nil, err
	}
	e.keepSnapshot(p.URI, snap) // it is asked for by its number from now on
	out.snapshotInfo, out.Place = infoOf(snap.Info()), branch
	return out, nil
}

// rows answers with how many rows a scan of a place gives.
func (e *Engine) rows(ctx context.Context, raw json.RawMessage) (any, error) {
	var p tableParams
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	view, err := e.view(ctx, p.place)
	if err != nil {
		return nil, err
	}
	m, err := reader.Matching(ctx, view.Snapshot, reader.PlanOptions{}, reader.LayoutOptions{View: view})
	if err != nil {
		return nil, err
	}
	return m.Rows, nil
}

// tableAnswer is a table as Python gets it: a snapshot, and, where a branch was opened, the place that stands for what it reads.
type tableAnswer struct {
	snapshotInfo
	Place *place `json:"place,omitempty"`
}

// appendJSON writes a as encoding/json would.
func (a tableAnswer) appendJSON(b []byte) []byte {
	b = a.snapshotInfo.appendJSON(b)
	if a.Place == nil {
		return b
	}
	text, err := json.Marshal(a.Place)
	if err != nil {
		panic(err) // it is numbers and strings
	}
	return append(append(jsontext.AppendMember(b[:len(b)-1], "place"), text...), '}')
}

func (e *Engine) snapshots(ctx context.Context, raw json.RawMessage) (any, error) {
	var p place
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	s, err := e.store(ctx, p.URI)
	if err != nil {
		return nil, err
	}
	t, err := s.Table(ctx, p.Table)
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

// featureInfo is a feature as Python gets it.
type featureInfo struct {
	Name         string `json:"name"`
	ID           string `json:"id"` // empty: a partition key
	Kind         string `json:"kind"`
	Elem         string `json:"elem"`
	Score        string `json:"score"`
	Dim          uint32 `json:"dim"`
	Role         string `json:"role"`
	Logical      string `json:"logical"`
	OriginColumn string `json:"origin_column"`
	OriginKey    string `json:"origin_key"`
}

// appendJSON writes i as encoding/json would.
func (i *featureInfo) appendJSON(b []byte) []byte {
	b = jsontext.AppendText(append(b, '{'), "name", i.Name)
	b = jsontext.AppendText(b, "id", i.ID)
	b = jsontext.AppendText(b, "kind", i.Kind)
	b = jsontext.AppendText(b, "elem", i.Elem)
	b = jsontext.AppendText(b, "score", i.Score)
	b = jsontext.AppendUint(b, "dim", uint64(i.Dim))
	b = jsontext.AppendText(b, "role", i.Role)
	b = jsontext.AppendText(b, "logical", i.Logical)
	b = jsontext.AppendText(b, "origin_column", i.OriginColumn)
	return append(jsontext.AppendText(b, "origin_key", i.OriginKey), '}')
}

func featureOf(f storage.Feature) featureInfo {
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

func (e *Engine) features(ctx context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		place
		Features []string `json:"features"`
		Overlay  []string `json:"overlay,omitempty"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	view, err := e.view(ctx, p.place)
	if err != nil {
		return nil, err
	}
	plan, err := reader.NewViewPlan(ctx, view, reader.PlanOptions{Features: p.Features, Overlays: p.Overlay})
	if err != nil {
		return nil, err
	}
	out := make([]featureInfo, len(plan.Features))
	for i, f := range plan.Features {
		out[i] = featureOf(f)
	}
	return out, nil
}
