package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/jsontext"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage/catalog"
)

// Version is the version of the encodings of Plan and Split. A reader refuses any other.
const Version = 1

// planWire is the encoding of a Plan. Field order is part of it: Hash is taken over the bytes.
type planWire struct {
	Version    int           `json:"version"`
	Table      string        `json:"table"`
	Snapshot   uint64        `json:"snapshot"`
	Partition  string        `json:"partition,omitempty"`
	Filter     string        `json:"filter,omitempty"`
	Downsample string        `json:"downsample,omitempty"`
	SampleList string        `json:"sample_list,omitempty"`
	Branch     string        `json:"branch,omitempty"`
	BranchList *pinWire      `json:"branch_list,omitempty"`
	Overlays   []pinWire     `json:"overlays,omitempty"` // the lowest first
	BatchSize  int           `json:"batch_size"`
	Output     string        `json:"output"`
	Dedup      string        `json:"dedup,omitempty"` // none for kjt, which plans were before there was another
	Shuffle    *shuffleWire  `json:"shuffle,omitempty"`
	Features   []featureWire `json:"features"`
}

// pinWire is the encoding of a storage.Pin.
type pinWire struct {
	Name     string `json:"name"`
	Snapshot uint64 `json:"snapshot"`
}

type featureWire struct {
	ID           string `json:"id,omitempty"` // 16 hex digits; none for a partition key
	Name         string `json:"name"`
	Generation   uint32 `json:"generation,omitempty"`
	Role         string `json:"role"`
	Kind         string `json:"kind"`
	Elem         string `json:"elem,omitempty"`
	Score        string `json:"score,omitempty"`
	Dim          uint32 `json:"dim,omitempty"`
	Logical      string `json:"logical,omitempty"`
	OriginColumn string `json:"origin_column,omitempty"`
	OriginKey    string `json:"origin_key,omitempty"`
	// Transforms is the text of the feature's Chain. The kind, types and logical above are what is stored.
	Transforms string `json:"transforms,omitempty"`
	Exact      bool   `json:"exact,omitempty"`
	Expanded   bool   `json:"expanded,omitempty"`
}

// OrderVersion is the version of the order of rows of a shuffle, see package order. It is part of plans that shuffle.
const OrderVersion = 1

// shuffleWire is the encoding of a Shuffle; there is none for UnitNone.
type shuffleWire struct {
	Order         int          `json:"order"`
	Unit          string       `json:"unit"`
	BufferStripes int          `json:"buffer_stripes"`
	Seed          uint64       `json:"seed"`
	Key           *featureWire `json:"key,omitempty"`
}

func (w *shuffleWire) shuffle() (Shuffle, error) {
	s := Shuffle{BufferStripes: w.BufferStripes, Seed: w.Seed}
	if w.Order != OrderVersion {
		return s, fmt.Errorf("order %d: this reader knows %d", w.Order, OrderVersion)
	}
	var err error
	if s.Unit, err = ParseUnit(w.Unit); err == nil && s.Unit == UnitNone {
		err = errors.New("none is not written")
	}
	if err == nil && w.Key != nil {
		if s.Key, err = w.Key.feature(); w.Key.Expanded {
			err = errors.New("the key is not expanded")
		}
	}
	return s, err
}

// MarshalJSON gives the stable, versioned encoding of p: that of its planWire.
func (p *Plan) MarshalJSON() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	b := make([]byte, 0, 256+200*len(p.Features))
	b = jsontext.AppendUint(append(b, '{'), "version", Version)
	b = jsontext.AppendText(b, "table", p.Table)
	b = jsontext.AppendUint(b, "snapshot", p.Snapshot)
	b = appendTextIf(b, "partition", p.Partition)
	b = appendTextIf(b, "filter", p.Filter)
	b = appendTextIf(b, "downsample", p.Downsample)
	b = appendTextIf(b, "sample_list", p.SampleList)
	b = appendTextIf(b, "branch", p.Branch)
	if p.BranchList.Name != "" {
		b = appendPin(jsontext.AppendMember(b, "branch_list"), p.BranchList)
	}
	for i, o := range p.Overlays {
		if i == 0 {
			b = append(jsontext.AppendMember(b, "overlays"), '[')
		} else {
			b = append(b, ',')
		}
		b = appendPin(b, o)
	}
	if len(p.Overlays) > 0 {
		b = append(b, ']')
	}
	b = jsontext.AppendUint(b, "batch_size", uint64(p.BatchSize))
	b = jsontext.AppendText(b, "output", p.Output.String())
	if p.Dedup != DedupKJT {
		b = jsontext.AppendText(b, "dedup", p.Dedup.String())
	}
	if s := &p.Shuffle; s.Unit != UnitNone {
		b = jsontext.AppendUint(append(jsontext.AppendMember(b, "shuffle"), '{'), "order", OrderVersion)
		b = jsontext.AppendText(b, "unit", s.Unit.String())
		b = strconv.AppendInt(jsontext.AppendMember(b, "buffer_stripes"), int64(s.BufferStripes), 10)
		b = jsontext.AppendUint(b, "seed", s.Seed)
		if s.Key != (catalog.Feature{}) {
			b = appendFeature(jsontext.AppendMember(b, "key"), &s.Key, s.Key.Type, s.Key.Logical, "", false, false)
		}
		b = append(b, '}')
	}
	b = append(jsontext.AppendMember(b, "features"), '[')
	for i := range p.Features {
		f := &p.Features[i]
		if i > 0 {
			b = append(b, ',')
		}
		if x := p.transform(i); x != nil {
			b = appendFeature(b, f, x.StoredType, x.StoredLogical, x.Chain.String(), p.IsExact(i), p.Expands(int32(i)))
		} else {
			b = appendFeature(b, f, f.Type, f.Logical, "", p.IsExact(i), p.Expands(int32(i)))
		}
	}
	return append(b, "]}"...), nil
}

// appendFeature appends a feature, encoded as a featureWire. t and logical are its stored type, transforms is the text
// of its transforms.
func appendFeature(b []byte, f *catalog.Feature, t vector.Type, logical, transforms string, exact,
	expanded bool) []byte {
	b = append(b, '{')
	if IsPartitionKey(*f) {
		b = jsontext.AppendText(b, "name", f.Name)
		b = jsontext.AppendText(b, "role", partitionRole)
		b = jsontext.AppendText(b, "kind", f.Type.Kind.String())
		return append(appendTrueIf(b, "expanded", expanded), '}')
	}
	b = append(appendHex64(append(jsontext.AppendMember(b, "id"), '"'), uint64(f.ID)), '"')
	b = jsontext.AppendText(b, "name", f.Name)
	if f.Generation != 0 {
		b = jsontext.AppendUint(b, "generation", uint64(f.Generation))
	}
	b = jsontext.AppendText(b, "role", roleNames[f.Role])
	b = jsontext.AppendText(b, "kind", t.Kind.String())
	b = appendTextIf(b, "elem", elemName(t.Elem))
	b = appendTextIf(b, "score", elemName(t.Score))
	if t.Dim != 0 {
		b = jsontext.AppendUint(b, "dim", uint64(t.Dim))
	}
	b = appendTextIf(b, "logical", logical)
	b = appendTextIf(b, "origin_column", f.OriginColumn)
	b = appendTextIf(b, "origin_key", f.OriginKey)
	b = appendTextIf(b, "transforms", transforms)
	b = appendTrueIf(b, "exact", exact)
	return append(appendTrueIf(b, "expanded", expanded), '}')
}

func appendTrueIf(b []byte, name string, set bool) []byte {
	if set {
		b = append(jsontext.AppendMember(b, name), "true"...)
	}
	return b
}

// appendPin appends a pin, encoded as a pinWire.
func appendPin(b []byte, p catalog.Pin) []byte {
	b = jsontext.AppendText(append(b, '{'), "name", p.Name)
	return append(jsontext.AppendUint(b, "snapshot", p.Snapshot), '}')
}

// appendTextIf appends a member unless it is empty.
func appendTextIf(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return jsontext.AppendText(b, name, value)
}

// appendHex64 appends 16 hex digits.
func appendHex64(b []byte, v uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[v>>shift&0xF])
	}
	return b
}

// marshal is json.Marshal without the escaping of HTML, so that the text of predicates stays readable.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON decodes the output of MarshalJSON. It returns an error for unknown fields, and for a plan that is not
// valid.
func (p *Plan) UnmarshalJSON(data []byte) error {
	var w planWire
	if err := unmarshalStrict(data, &w); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if w.Version != Version {
		return fmt.Errorf("plan: version %d: this reader knows %d", w.Version, Version)
	}
	output, err := ParseOutput(w.Output)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	dedup := DedupKJT
	if w.Dedup != "" {
		if dedup, err = ParseDedup(w.Dedup); err == nil && dedup == DedupKJT {
			err = errors.New("dedup kjt is not written")
		}
		if err != nil {
			return fmt.Errorf("plan: %w", err)
		}
	}
	out := Plan{
		Table: w.Table, Snapshot: w.Snapshot, Partition: w.Partition, Filter: w.Filter, Downsample: w.Downsample,
		SampleList: w.SampleList, BatchSize: w.BatchSize, Output: output, Dedup: dedup,
		Branch: w.Branch, Features: make([]catalog.Feature, len(w.Features)),
	}
	if w.BranchList != nil {
		out.BranchList = catalog.Pin(*w.BranchList)
	}
	for _, o := range w.Overlays {
		out.Overlays = append(out.Overlays, catalog.Pin(o))
	}
	for i := range w.Features {
		if out.Features[i], err = w.Features[i].feature(); err != nil {
			return fmt.Errorf("plan: feature %q: %w", w.Features[i].Name, err)
		}
		if w.Features[i].Exact {
			out.setExact(i)
		}
		if w.Features[i].Expanded {
			if out.Expanded == nil {
				out.Expanded = make([]bool, len(w.Features))
			}
			out.Expanded[i] = true
		}
	}
	if err := out.readTransforms(w.Features); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if w.Shuffle != nil {
		if out.Shuffle, err = w.Shuffle.shuffle(); err != nil {
			return fmt.Errorf("plan: shuffle: %w", err)
		}
	}
	if err := out.Validate(); err != nil {
		return err
	}
	*p = out
	return nil
}

// readTransforms sets the transforms of p's features from their text.
func (p *Plan) readTransforms(features []featureWire) error {
	for i := range features {
		text := features[i].Transforms
		if text == "" {
			continue
		}
		chain, err := transform.ParseChain(text)
		if err == nil && chain.String() != text {
			err = fmt.Errorf("%q is written %q", text, chain)
		}
		if err != nil {
			return fmt.Errorf("transforms of %q: %w", features[i].Name, err)
		}
		if p.Transforms == nil {
			p.Transforms = make([]transform.Bound, len(features))
		}
		if err := p.SetTransform(i, chain); err != nil {
			return err
		}
	}
	return nil
}

func (w *featureWire) feature() (f catalog.Feature, err error) {
	if w.Role == partitionRole {
		f = PartitionColumn(w.Name)
		if *w != (featureWire{Name: w.Name, Role: w.Role, Kind: f.Type.Kind.String(), Expanded: w.Expanded}) {
			err = errors.New("a partition key has a name, a role and kind string, and nothing else")
		}
		return f, err
	}
	f = catalog.Feature{
		Name: w.Name, Generation: w.Generation, Logical: w.Logical, OriginColumn: w.OriginColumn,
		OriginKey: w.OriginKey,
	}
	id, err := parseHex64(w.ID)
	if err == nil && id == 0 {
		err = errors.New("id is zero")
	}
	if err != nil {
		return f, err
	}
	f.ID = catalog.FeatureID(id)
	if f.Role, err = parseRole(w.Role); err != nil {
		return f, err
	}
	f.Type.Dim = w.Dim
	if f.Type.Kind, err = vector.ParseKind(w.Kind); err != nil {
		return f, err
	}
	if f.Type.Elem, err = parseElem(w.Elem); err != nil {
		return f, err
	}
	f.Type.Score, err = parseElem(w.Score)
	return f, err
}

// Hash identifies p: it is the xxhash64 of its encoding. It is 0 for a plan that is not valid.
func (p *Plan) Hash() uint64 {
	_, hash, err := p.Encode()
	if err != nil {
		return 0
	}
	return hash
}

// Encode returns MarshalJSON and Hash, encoding p once.
func (p *Plan) Encode() (text []byte, hash uint64, err error) {
	if text, err = p.MarshalJSON(); err != nil {
		return nil, 0, err
	}
	return text, xxhash.Sum64(text), nil
}

// splitWire is the encoding of a Split.
type splitWire struct {
	Version  int    `json:"version"`
	Plan     string `json:"plan"` // 16 hex digits
	FirstRow uint64 `json:"first_row"`
	Rows     uint64 `json:"rows"`
}

// MarshalJSON returns the stable, versioned encoding of s.
func (s Split) MarshalJSON() ([]byte, error) {
	return marshal(splitWire{Version, fmt.Sprintf("%016x", s.Plan), s.FirstRow, s.Rows})
}

// UnmarshalJSON decodes the output of MarshalJSON. It returns an error for unknown fields.
func (s *Split) UnmarshalJSON(data []byte) error {
	var w splitWire
	if err := unmarshalStrict(data, &w); err != nil {
		return fmt.Errorf("split: %w", err)
	}
	if w.Version != Version {
		return fmt.Errorf("split: version %d: this reader knows %d", w.Version, Version)
	}
	plan, err := parseHex64(w.Plan)
	if err != nil {
		return fmt.Errorf("split: %w", err)
	}
	*s = Split{Plan: plan, FirstRow: w.FirstRow, Rows: w.Rows}
	return nil
}

func unmarshalStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the end")
	}
	return nil
}

func parseHex64(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil || len(s) != 16 {
		return 0, fmt.Errorf("id %q: want 16 hex digits", s)
	}
	return v, nil
}

func elemName(e vector.Elem) string {
	if e == vector.NoElem {
		return ""
	}
	return e.String()
}

func parseElem(s string) (vector.Elem, error) {
	if s == "" {
		return vector.NoElem, nil
	}
	return vector.ParseElem(s)
}

func parseRole(s string) (catalog.Role, error) {
	for r, n := range roleNames {
		if n == s {
			return catalog.Role(r), nil
		}
	}
	return 0, fmt.Errorf("role %q is unknown", s)
}
