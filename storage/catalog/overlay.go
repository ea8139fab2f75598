package catalog

import (
	"encoding/binary"
	"fmt"

	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/wire"
)

// An Overlay is a named layer of features over a table. For a segment it has at most one Layer, whose feature files
// hold its features for the segment's rows. It says nothing about who reads it: a branch, a plan that names it, or,
// once merged, everybody.
type Overlay struct {
	Name string
	// Number tells overlays of a table apart, in the order in which they were added. Commit gives it, and gives none
	// twice in a table.
	Number uint32
	// Added is the snapshot that defined it. Commit sets it.
	Added uint64
	// Features are what it adds to the table's or replaces, in id order. One that replaces has the id of the table's.
	Features []Feature
	// MissingRows says what its features are in rows that a layer does not cover, MissingLayers what they are in
	// segments that have no layer of it, such as those ingested since. Of an overlay to merge the latter must be
	// FallThrough.
	MissingRows   MissingPolicy
	MissingLayers MissingPolicy
	// Merged is the snapshot that made it part of the table; 0: it is read only by those who name it. Of those that are
	// merged, the one that was so later lies over the others, whichever was added first: these may be part of the
	// segments by then.
	Merged uint64
	// Branch is the branch that it was made on, whose snapshot has the segments of its layers; empty: the table's
	// newest.
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

var missingPolicyNames = [...]string{FallThrough: "fallthrough", Null: "null", Refuse: "refuse"}

func (u MissingPolicy) String() string {
	if int(u) < len(missingPolicyNames) {
		return missingPolicyNames[u]
	}
	return fmt.Sprintf("missing-value policy %d", uint8(u))
}

const (
	MaxReferenceName = 128 // of an overlay, a sample list or a branch
	// maxOverlayFeatures bounds an overlay, and so how large its entry gets.
	maxOverlayFeatures = 1 << 16
)

// CheckName returns an error when name cannot be that of an overlay, a sample list or a branch.
func CheckName(what, name string) error { return names.CheckTyped(what, name, MaxReferenceName) }

// Validate returns an error naming the first field that is wrong.
func (o Overlay) Validate() error {
	if err := CheckName("overlay", o.Name); err != nil {
		return err
	}
	if o.Branch != "" {
		if err := CheckName("branch", o.Branch); err != nil {
			return fmt.Errorf("overlay %s: %w", o.Name, err)
		}
		if o.Merged != 0 {
			return fmt.Errorf("overlay %s: merged, and of branch %s", o.Name, o.Branch)
		}
	}
	if o.MissingRows > Null || o.MissingLayers > Refuse {
		return fmt.Errorf("overlay %s: missing-value policies %v of rows and %v of segments: unknown", o.Name,
			o.MissingRows, o.MissingLayers)
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

// AppendOverlay appends the value of an overlay's entry; the name is its key.
//
//	number | added | merged | policy of missing rows (1) | policy of missing layers (1) | branch |
//	features | (name | its entry in a schema, a string)...
func AppendOverlay(dst []byte, o Overlay) []byte {
	for _, v := range [...]uint64{uint64(o.Number), o.Added, o.Merged} {
		dst = binary.AppendUvarint(dst, v)
	}
	dst = append(dst, byte(o.MissingRows), byte(o.MissingLayers))
	dst = wire.AppendString(dst, o.Branch)
	dst = binary.AppendUvarint(dst, uint64(len(o.Features)))
	for _, f := range o.Features {
		dst = wire.AppendString(dst, f.Name)
		dst = wire.AppendString(dst, AppendFeature(nil, f))
	}
	return dst
}

// DecodeOverlay decodes what AppendOverlay wrote; the reason is empty when it is right.
func DecodeOverlay(name string, b []byte) (Overlay, string) {
	d := wire.Decoder{Rest: b}
	o := Overlay{Name: name, Number: uint32(d.Max(1<<32-1, "number")), Added: d.Uvarint(), Merged: d.Uvarint(),
		MissingRows: MissingPolicy(d.Byte()), MissingLayers: MissingPolicy(d.Byte()), Branch: d.String()}
	for range d.Max(min(uint64(len(d.Rest)), maxOverlayFeatures), "features") {
		name, value := d.String(), d.Bytes()
		if d.Reason != "" {
			break
		}
		f, reason := DecodeFeature(name, value)
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
