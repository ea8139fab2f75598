package storage

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/wire"
)

// An Overlay is a named layer of features over a table. For a segment it has at most one Layer, whose feature files hold its
// features for the segment's rows. It says nothing about who reads it: a branch, a plan that names it, or, once merged, everybody.
type Overlay struct {
	Name string
	// Number tells overlays of a table apart, in the order in which they were added. Commit gives it, and gives none twice in a table.
	Number uint32
	// Added is the snapshot that defined it. Commit sets it.
	Added uint64
	// Features are what it adds to the table's or replaces, in id order. One that replaces has the id of the table's.
	Features []Feature
	// MissingRows says what its features are in rows that a layer does not cover, MissingLayers what they are in segments that
	// have no layer of it, such as those ingested since. Of an overlay to merge the latter must be FallThrough.
	MissingRows   MissingPolicy
	MissingLayers MissingPolicy
	// Merged is the snapshot that made it part of the table; 0: it is read only by those who name it. Of those that are merged, the one that
	// was so later lies over the others, whichever was added first: these may be part of the segments by then.
	Merged uint64
	// Branch is the branch that it was made on, whose snapshot has the segments of its layers; empty: the table's newest.
	Branch string
}

// A MissingPolicy says what the features of an overlay are where it has no values. The numbers are written to disk.
type MissingPolicy uint8

const (
	// FallThrough: what the overlays below and the table have.
	FallThrough MissingPolicy = 0
	// Null: null, whatever lies below.
	Null MissingPolicy = 1
	// Refuse: to read there is an error. Of segments without a layer only.
	Refuse MissingPolicy = 2
)

var missingPolicyNames = [...]string{FallThrough: "fall through", Null: "null", Refuse: "refuse"}

func (u MissingPolicy) String() string {
	if int(u) < len(missingPolicyNames) {
		return missingPolicyNames[u]
	}
	return fmt.Sprintf("missing-value policy %d", uint8(u))
}

const (
	maxReferenceName = 128 // of an overlay, a sample list or a branch
	// maxOverlayFeatures bounds an overlay, and so how large its entry gets.
	maxOverlayFeatures = 1 << 16
)

// checkName returns an error when name cannot be that of an overlay, a sample list or a branch.
func checkName(what, name string) error { return names.CheckTyped(what, name, maxReferenceName) }

// Validate returns an error naming the first field that is wrong.
func (o Overlay) Validate() error {
	if err := checkName("overlay", o.Name); err != nil {
		return err
	}
	if o.Branch != "" {
		if err := checkName("branch", o.Branch); err != nil {
			return fmt.Errorf("overlay %s: %w", o.Name, err)
		}
		if o.Merged != 0 {
			return fmt.Errorf("overlay %s: merged, and of branch %s", o.Name, o.Branch)
		}
	}
	if o.MissingRows > Null || o.MissingLayers > Refuse {
		return fmt.Errorf("overlay %s: missing-value policies %v of rows and %v of segments: unknown", o.Name, o.MissingRows, o.MissingLayers)
	}
	if len(o.Features) == 0 || len(o.Features) > maxOverlayFeatures {
		return fmt.Errorf("overlay %s: %d features: want 1 to %d", o.Name, len(o.Features), maxOverlayFeatures)
	}
	names := make(map[string]bool, len(o.Features))
	for i, f := range o.Features {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("overlay %s: %w", o.Name, err)
		}
		if i > 0 && o.Features[i-1].ID >= f.ID {
			return fmt.Errorf("overlay %s: feature %s twice, or not in the order of ids", o.Name, f.Name)
		}
		if names[f.Name] {
			return fmt.Errorf("overlay %s: feature %s twice", o.Name, f.Name)
		}
		names[f.Name] = true
	}
	return nil
}

// appendOverlay appends the value of an overlay's entry; the name is its key.
//
//	number | added | merged | policy of missing rows (1) | policy of missing layers (1) | branch |
//	features | (name | its entry in a schema, a string)...
func appendOverlay(dst []byte, o Overlay) []byte {
	for _, v := range [...]uint64{uint64(o.Number), o.Added, o.Merged} {
		dst = binary.AppendUvarint(dst, v)
	}
	dst = append(dst, byte(o.MissingRows), byte(o.MissingLayers))
	dst = wire.AppendString(dst, o.Branch)
	dst = binary.AppendUvarint(dst, uint64(len(o.Features)))
	for _, f := range o.Features {
		dst = wire.AppendString(dst, f.Name)
		dst = wire.AppendString(dst, appendFeature(nil, f))
	}
	return dst
}

// decodeOverlay decodes what appendOverlay wrote; the reason is empty when it is right.
func decodeOverlay(name string, b []byte) (Overlay, string) {
	d := wire.Decoder{Rest: b}
	o := Overlay{Name: name, Number: uint32(d.Max(1<<32-1, "number")), Added: d.Uvarint(), Merged: d.Uvarint(),
		MissingRows: MissingPolicy(d.Byte()), MissingLayers: MissingPolicy(d.Byte()), Branch: d.String()}
	for range d.Max(min(uint64(len(d.Rest)), maxOverlayFeatures), "features") {
		name, value := d.String(), d.Bytes()
		if d.Reason != "" {
			break
		}
		f, reason := decodeFeature(name, value)
		if reason != "" {
			d.Fail(reason)
			break
		}
		o.Features = append(o.Features, f)
	}
	d.End()
	if d.Reason != "" {
		return Overlay{}, fmt.Sprintf("overlay %.150q: %s", name, d.Reason)
	}
	if err := o.Validate(); err != nil {
		return Overlay{}, err.Error()
	}
	return o, ""
}

// Overlays returns the overlays of the snapshot: those that are merged, the lowest first, and then the others, by number. Its cost is one request
// or two, and none in a snapshot without overlays.
func (s *Snapshot) Overlays(ctx context.Context) ([]Overlay, error) {
	if s.m.overlays == 0 {
		return nil, nil
	}
	var out []Overlay
	err := s.space(ctx, overlaySpace, func(key, value []byte) string {
		o, reason := decodeOverlay(string(key[1:]), value)
		out = append(out, o)
		return reason
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b Overlay) int {
		// Merged-1: those that are not come last.
		return cmp.Or(cmp.Compare(a.Merged-1, b.Merged-1), cmp.Compare(a.Number, b.Number))
	})
	return out, nil
}

// Overlay returns the overlay of a name; ErrNotFound names the nearest.
func (s *Snapshot) Overlay(ctx context.Context, name string) (Overlay, error) {
	o, err := s.findOverlay(ctx, name)
	if err != nil || o != nil {
		return deref(o), err
	}
	all, err := s.Overlays(ctx)
	if err != nil {
		return Overlay{}, err
	}
	var names []string
	for _, o := range all {
		names = append(names, o.Name)
	}
	return Overlay{}, fmt.Errorf("table %s: overlay %.150q: %w%s", s.t.name, name, ErrNotFound, suggest.Hint(name, names))
}

// findOverlay returns nil where there is no such overlay.
func (s *Snapshot) findOverlay(ctx context.Context, name string) (*Overlay, error) {
	if s.m.overlays == 0 {
		return nil, nil
	}
	values, err := s.t.s.get(ctx, s.m.listing, overlayKey(name))
	if err != nil || values[0] == nil {
		return nil, err
	}
	o, reason := decodeOverlay(name, values[0])
	if reason != "" {
		return nil, wire.Corrupt(s.treeName(s.m.listing), reason)
	}
	return &o, nil
}

// deref returns what p points to, the zero value for nil.
func deref[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// space calls visit for every entry of a space of the listing. What visit returns, unless it is empty, is wrong with it.
func (s *Snapshot) space(ctx context.Context, space byte, visit func(key, value []byte) (reason string)) error {
	lower, upper := spaceBounds(space)
	return s.between(ctx, lower, upper, visit)
}

// between is space for the keys from lower on and below upper.
func (s *Snapshot) between(ctx context.Context, lower, upper []byte, visit func(key, value []byte) (reason string)) error {
	it := s.t.s.iter(ctx, s.m.listing, upper)
	for ok := it.seek(ctx, lower); ok; ok = it.next(ctx) {
		if reason := visit(it.key, it.value); reason != "" {
			return wire.Corrupt(s.treeName(s.m.listing), reason)
		}
	}
	return it.err
}
