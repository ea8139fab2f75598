package commit

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// An Operation is one thing that a commit does, such as AddSegments. To add an operation, write a type with these
// methods in a file of its own. If it adds segments or row bitmaps, it is an adder too.
type Operation interface {
	// phase says when the operation is applied.
	phase() phase
	// validate checks the operation by itself and against the other operations of its change.
	validate(c *Change) error
	// apply puts the operation into the edit. The error matches ErrConflict if a commit after the change's base is the
	// reason.
	apply(ctx context.Context, e *edit) error
}

// An adder is an Operation whose segments or row bitmaps must exist and belong to the table.
type adder interface {
	adds() ([]catalog.SegmentDescriptor, []bitmap.Ref)
}

// A phase orders the operations of a change. What is defined comes before what names it, and what is removed before
// what replaces it. Operations of one phase are applied in the order of the change.
type phase uint8

const (
	phaseDropOverlays phase = iota
	phaseDefineOverlays
	phaseAddFeatures
	phaseChangeFeatures
	phaseTable
	phaseOverwrite
	phaseRemove
	phaseAdd
	phaseRows
	phaseDropLists
	phaseDefineLists
	phaseListRows
	phaseBranches
	phases // the number of phases
)

// afterPhase lists what follows from the operations up to a phase.
var afterPhase = [phases][]func(*edit, context.Context) error{
	phaseAddFeatures:    {(*edit).features},
	phaseChangeFeatures: {(*edit).keys},
	phaseAdd:            {(*edit).emptied, (*edit).strip},
}

// A Change is what one commit does.
type Change struct {
	Operation string // what made it, for `dsi snapshots`: 1 to 31 bytes
	Base      uint64 // the snapshot that the change was made against; 0: none
	// Ops are the operations, at most one of each type. One without elements does nothing.
	Ops []Operation
}

// Op returns the operation of type T of a change, the zero value if there is none.
func Op[T Operation](c *Change) T {
	for _, o := range c.Ops {
		if t, ok := o.(T); ok {
			return t
		}
	}
	return *new(T)
}

// Set adds an operation, in place of the one of its type.
func (c *Change) Set(o Operation) {
	same := func(x Operation) bool { return reflect.TypeOf(x) == reflect.TypeOf(o) }
	c.Ops = append(slices.DeleteFunc(slices.Clone(c.Ops), same), o)
}

// Validate returns an error that names the first invalid part.
func (c Change) Validate() error {
	if c.Operation == "" || len(c.Operation) > snapshot.MaxOperation {
		return fmt.Errorf("change: operation %q of %d bytes: want 1 to %d", c.Operation, len(c.Operation),
			snapshot.MaxOperation)
	}
	for i, o := range c.Ops { // Op finds no pointers
		switch kind := reflect.TypeOf(o); {
		case kind == nil:
			return fmt.Errorf("change: operation %d is nil", i)
		case kind.Kind() == reflect.Pointer:
			return fmt.Errorf("change: operation %d is a %v: want a %v", i, kind, kind.Elem())
		}
	}
	seen := map[reflect.Type]bool{}
	for _, o := range c.inOrder() {
		kind := reflect.TypeOf(o)
		if seen[kind] {
			return fmt.Errorf("change: %v twice", kind)
		}
		seen[kind] = true
		if err := o.validate(&c); err != nil {
			return fmt.Errorf("change: %w", err)
		}
	}
	return nil
}

// inOrder returns the operations in the order in which they are applied.
func (c *Change) inOrder() []Operation {
	return slices.SortedStableFunc(slices.Values(c.Ops), func(a, b Operation) int {
		return int(a.phase()) - int(b.phase())
	})
}

// needBase returns an error if n elements of an operation need a base and the change has none.
func (c *Change) needBase(n int, what string) error {
	if n > 0 && c.Base == 0 {
		return fmt.Errorf("base of 0: %s are changed against a snapshot", what)
	}
	return nil
}

// adds returns all segments and row bitmaps that the change adds.
func (c *Change) adds() (segments []catalog.SegmentDescriptor, rows []bitmap.Ref) {
	for _, o := range c.inOrder() {
		if a, ok := o.(adder); ok {
			s, r := a.adds()
			segments, rows = append(segments, s...), append(rows, r...)
		}
	}
	return segments, rows
}

// An edit collects what one attempt to commit changes.
type edit struct {
	change          *Change
	base            *snapshot.Snapshot
	m               snapshot.Manifest // the next one; its trees and info are put together last
	info            snapshot.Info
	listing, schema []lsm.Entry
	made            []string // objects that the attempt made

	added   []catalog.Feature                    // to the schema
	merging []catalog.Feature                    // of overlays that are merged into the table
	removed map[string]catalog.SegmentDescriptor // segments that the change removes
	// by partition: the first place of its removed segments; its added segments take it
	vacated map[string]catalog.Place
	// removed segments whose deletion vectors, layers and list rows the change must have seen
	replaced map[string]bool
	// overlays that the change defines or alters; nil: it drops the overlay
	defined map[string]*catalog.Overlay
	listed  map[string]*catalog.SampleList // the same for sample lists
	renamed []renamed
}

func (e *edit) store() *snapshot.Store { return e.base.Log.Store }

// setListing sets an entry of the listing, or removes it if value is nil. setSchema is the same for the schema.
func (e *edit) setListing(key, value []byte) {
	e.listing = append(e.listing, lsm.Entry{Key: key, Value: value})
}
func (e *edit) setSchema(key, value []byte) {
	e.schema = append(e.schema, lsm.Entry{Key: key, Value: value})
}

// setOf sets the entry of a segment under a prefix of the listing.
func (e *edit) setOf(segment string, prefix, value []byte) error {
	id, err := names.ParseID(segment)
	if err == nil {
		e.setListing(append(slices.Clone(prefix), id[:]...), value)
	}
	return err
}

// apply applies the operations of the change.
func (e *edit) apply(ctx context.Context) error {
	ops := e.change.inOrder()
	for p := range phases {
		for ; len(ops) > 0 && ops[0].phase() == p; ops = ops[1:] {
			if err := ops[0].apply(ctx, e); err != nil {
				return err
			}
		}
		for _, f := range afterPhase[p] {
			if err := f(e, ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// taken says that a name is in use. It is a conflict if the name was free at the base.
func taken(what, name string, since, base uint64) error {
	instead := "replace it"
	if what == "branch" { // which is made anew only by hand: others may read it
		instead = "drop it first"
	}
	err := fmt.Errorf("%s %s: %w since snapshot %d: use another, or %s", what, name, catalog.ErrExists, since, instead)
	if since > base {
		err = fmt.Errorf("%w: %w", err, catalog.ErrConflict)
	}
	return err
}

// later says that another commit set something after the change's base.
func later(what, name string, since, base uint64) error {
	return fmt.Errorf("%s %s was set in snapshot %d, after snapshot %d that the change was made against: %w", what,
		name, since, base, catalog.ErrConflict)
}

// A checkOnce keeps the first error. A name that comes twice is an error.
type checkOnce struct {
	seen map[string]bool
	err  error
}

func (o *checkOnce) check(err error, what, name string) {
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	key := what + "\x00" + name
	if err == nil && o.seen[key] {
		err = errors.New("twice")
	}
	o.seen[key] = true
	if o.err == nil && err != nil {
		o.err = fmt.Errorf("%s %.150q: %w", what, name, err)
	}
}

// checkNames checks names that must come once.
func checkNames(kind, what string, names []string) error {
	var once checkOnce
	for _, name := range names {
		once.check(catalog.CheckName(kind, name), what, name)
	}
	return once.err
}
