package repair

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/storage/verify"
	"github.com/dsistore/dsistore/storage/wire"
)

// Operation is the operation of the snapshots that repairs make.
const Operation = "repair"

// Options: the zero value looks at everything, and changes nothing.
type Options struct {
	Apply bool // do it; else only say what would be done
	// Shallow looks only whether objects are there and have the right size, as verify does, before it looks closely at
	// those that are not.
	Shallow bool
	// NullFeatures keeps the rows of a segment of which only some features are damaged: these are null there. Else the
	// rows go.
	NullFeatures bool
	// From is the snapshot to go back to where the newest cannot be read. 0: the newest can.
	From uint64
	// Undelete goes back to From also where rows that were deleted after it come back.
	Undelete bool
	// Progress, unless nil, is called with the bytes looked at and to look at; never by two goroutines at once.
	Progress func(done, total uint64)
}

// An Action is what becomes of something that is damaged. Values are part of the JSON.
type Action string

const (
	Rebuild      Action = "rebuild"       // from what is whole; nothing is lost
	DropRows     Action = "drop rows"     // of a segment
	NullFeatures Action = "null features" // of a segment or a layer
	DropLayer    Action = "drop layer"    // of an overlay; reading the overlay there is an error
	DropList     Action = "drop list"
	DropBranch   Action = "drop branch"
	Expire       Action = "expire"  // snapshots
	GoBack       Action = "go back" // behind the newest snapshots
	Note         Action = "note"    // only snapshots before, or branches, read it: reading it there stays an error
	Leave        Action = "leave"   // a repair does nothing about it
)

// An Item is one thing that is damaged, and what becomes of it. Its JSON keys are stable.
type Item struct {
	Action Action `json:"action"`
	// Kind is segment, layer, deletion vector, rows of a list, sample list, branch, snapshots, table id, or other.
	Kind      string   `json:"kind"`
	ID        string   `json:"id,omitempty"` // of the segment or row bitmap
	Partition string   `json:"partition,omitempty"`
	Rows      uint64   `json:"rows"`               // that the table loses, without deleted ones
	Features  []string `json:"features,omitempty"` // that become null, or cannot be read where others can
	Overlay   string   `json:"overlay,omitempty"`
	Name      string   `json:"name,omitempty"`  // of a sample list or branch
	First     uint64   `json:"first,omitempty"` // snapshots
	Last      uint64   `json:"last,omitempty"`
	Lost      string   `json:"lost"`           // what is lost, in a sentence
	Hint      string   `json:"hint,omitempty"` // what else could be done
	Damage    []string `json:"damage"`         // where, and what
}

// A Report says what is damaged, and what became of it, or would. Its JSON keys are stable.
type Report struct {
	Table    string  `json:"table"`
	Applied  bool    `json:"applied"`
	Base     uint64  `json:"base"`               // the snapshot that the repair builds on; 0: none can be read
	Snapshot uint64  `json:"snapshot,omitempty"` // that the repair made
	Items    []*Item `json:"items"`
	LostRows uint64  `json:"lost_rows"` // of Base; what was done since is lost besides, where the table goes back
	// NeedsFrom: the newest snapshot cannot be read. It is done only with From, and these are the snapshots to choose
	// from, the newest first, at most 10.
	NeedsFrom []uint64 `json:"needs_from,omitempty"`
	// NeedsUndelete: deleted rows come back, or may.
	NeedsUndelete bool `json:"needs_undelete,omitempty"`
}

// Left returns how many things that are damaged stay so.
func (r *Report) Left() (n int) {
	for _, i := range r.Items {
		if i.Action == Leave {
			n++
		}
	}
	return n
}

// Repairs returns how many things a repair does something about.
func (r *Report) Repairs() int { return len(r.Items) - r.Left() }

var (
	// ErrFrom is matched when a snapshot is to be chosen.
	ErrFrom = errors.New("the newest snapshot cannot be read")
	// ErrUndelete is matched when deleted rows would come back.
	ErrUndelete = errors.New("deleted rows would come back")
)

// Run looks for what is damaged in a table, and with Options.Apply takes it out, by one commit. An error of
// storage.ErrConflict: somebody changed the same meanwhile, and nothing was done. The report comes with the errors
// ErrFrom and ErrUndelete too.
func Run(ctx context.Context, t *snapshot.Log, opts Options) (*Report, error) {
	p := &planner{t: t, s: t.Store, opts: opts, r: &Report{Table: t.Table, Items: []*Item{}},
		byID: map[names.ID][]error{}, bySnapshot: map[uint64][]error{}, runs: map[names.ID]bool{}}
	if err := p.plan(ctx); err != nil {
		return nil, fmt.Errorf("repair table %s: %w", t.Table, err)
	}
	if !opts.Apply || p.base == nil || p.r.Repairs() == 0 {
		return p.r, nil
	}
	var err error
	switch {
	case len(p.r.NeedsFrom) > 0:
		err = fmt.Errorf("%w: choose the one to go back to, as --from %d", ErrFrom, p.r.NeedsFrom[0])
	case p.r.NeedsUndelete && !opts.Undelete:
		err = fmt.Errorf("%w, or may; --undelete goes back all the same", ErrUndelete)
	default:
		err = p.apply(ctx)
	}
	if err != nil {
		return p.r, fmt.Errorf("repair table %s: %w", t.Table, err)
	}
	p.r.Applied = true
	return p.r, nil
}

// A planner is one Run.
type planner struct {
	t    *snapshot.Log
	s    *snapshot.Store
	opts Options
	r    *Report

	// What verify has found: by the id that is in the name of the object, by snapshot, and the rest.
	byID       map[names.ID][]error
	bySnapshot map[uint64][]error
	others     []error
	mu         sync.Mutex
	runs       map[names.ID]bool // of those that verify blames, which are damaged; guarded by mu

	last     uint64 // the newest snapshot
	base     *snapshot.Snapshot
	lost     lostRange // the newest snapshots, which the repair goes back behind
	expire   uint64    // snapshots below expire; 0: no more than have
	noRoot   bool      // the root of the table is missing
	segments segments
	branches []string // to drop
}

// isDamage reports whether an error says that stored bytes are wrong or missing. An object of a version that this
// program does not know is none, nor is a store that does not answer: repairing what is whole would lose it.
func isDamage(err error) bool {
	return errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported)
}

// look returns nil where err is nil or damage, and else what keeps the repair from looking.
func look(err error) error {
	if err == nil || isDamage(err) {
		return nil
	}
	return fmt.Errorf("not everything can be looked at, and what may be whole is not taken out: %w", err)
}

// sure calls f again where it finds damage: what was read wrong once may be whole.
func (p *planner) sure(ctx context.Context, f func() error) error {
	err := f()
	if err == nil || !isDamage(err) {
		return err
	}
	if err = f(); err == nil || !isDamage(err) {
		return err
	}
	return cmp.Or(p.isThere(ctx), err)
}

// isThere returns an error unless the store has its marker. A directory whose disk is not mounted any more, and a
// gateway without its service, say of all objects that they are missing.
func (p *planner) isThere(ctx context.Context) error {
	if _, err := p.s.Blobs.Stat(ctx, names.Marker); err != nil {
		return fmt.Errorf("the store cannot be reached any more: %w", err)
	}
	return nil
}

// plan finds out what is damaged, and what becomes of it.
func (p *planner) plan(ctx context.Context) error {
	err := p.find(ctx)
	if err != nil && !isDamage(err) || err == nil && len(p.r.Items) == 0 {
		return err
	}
	return cmp.Or(p.isSame(ctx), err)
}

// isSame returns an error if snapshots have expired since the repair began to look: what gc or an erasure has taken
// since looks as if it were missing. So does the newest snapshot, once there are others after it.
func (p *planner) isSame(ctx context.Context) error {
	n, err := p.t.Newest(ctx)
	if err != nil || n.Number == p.last {
		return look(err)
	}
	m, err := p.t.Header(ctx, n.Number)
	if err != nil {
		return look(err)
	}
	if p.base == nil || p.lost.Last > 0 || m.Info.Oldest > p.base.Info().Oldest {
		return fmt.Errorf("snapshots were made, or have expired, while this looked: run it again: %w",
			catalog.ErrConflict)
	}
	return nil
}

func (p *planner) find(ctx context.Context) error {
	found, err := p.verify(ctx, nil)
	if err != nil {
		return err
	}
	for _, d := range found {
		p.sort(d)
	}
	if err := p.snapshots(ctx); err != nil || p.base == nil {
		return err
	}
	p.r.Base = p.base.Info().Number
	if err := p.findSegments(ctx); err != nil {
		return err
	}
	if err := p.root(ctx); err != nil {
		return err
	}
	for _, d := range p.others {
		i := p.add(&Item{Action: Leave, Kind: "other", Lost: "nothing is done about it", Damage: texts(d)})
		if strings.HasPrefix(objectOf(d), names.TableDir(p.t.Table)+names.LeasesDir) {
			i.Kind, i.Lost = "lease", "nothing is lost: it goes when the lease is over"
		}
	}
	for _, i := range p.r.Items {
		p.r.LostRows += i.Rows
	}
	return nil
}

// verify returns the damage of the table. only, unless nil, are the segments and row bitmaps to look at.
func (p *planner) verify(ctx context.Context, only map[names.ID]bool) ([]error, error) {
	opts := verify.Options{Deep: !p.opts.Shallow, MaxDamage: math.MaxUint64, Only: only}
	if only == nil {
		opts.Progress = p.opts.Progress
	}
	r, err := verify.Run(ctx, p.s, []string{p.t.Table}, opts)
	if err != nil {
		return nil, err
	}
	for _, d := range r.Damage {
		if err := look(d); err != nil {
			return nil, err
		}
	}
	return r.Damage, nil
}

// sort notes damage by what it is of.
func (p *planner) sort(d error) {
	var branch *verify.BrokenBranch
	if errors.As(d, &branch) {
		return // findBranches looks itself
	}
	object := objectOf(d)
	if id, ok := names.ParseDataName(object); ok {
		p.byID[id] = append(p.byID[id], d)
		return
	}
	n, ok := names.ParseSnapshot(p.t.Table, object)
	if !ok {
		n, ok = names.ParsePinned(p.t.Table, object)
	}
	switch {
	case ok:
		p.bySnapshot[n] = append(p.bySnapshot[n], d)
	case object == names.TableRoot(p.t.Table): // root looks itself
	default:
		p.others = append(p.others, d)
	}
}

func (p *planner) add(i *Item) *Item {
	p.r.Items = append(p.r.Items, i)
	return i
}

// maxTexts bounds the errors of an item.
const maxTexts = 20

// texts returns the messages of errors, each once.
func texts(errs ...error) []string {
	out := []string{}
	seen := map[string]bool{}
	for _, err := range errs {
		if s := err.Error(); !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	if n := len(out) - maxTexts; n > 0 {
		out = append(out[:maxTexts], fmt.Sprintf("and %d more", n))
	}
	return out
}

// root looks at the root of the table: that is made anew where it is missing, for every snapshot has the table's id.
func (p *planner) root(ctx context.Context) error {
	missing := false
	err := p.sure(ctx, func() error {
		_, err := p.t.ReadRoot(ctx)
		missing = errors.Is(err, object.ErrNotFound)
		return wire.Missing(names.TableRoot(p.t.Table), err)
	})
	switch {
	case err != nil && missing && isDamage(err):
		p.noRoot = true
		p.add(&Item{Action: Rebuild, Kind: "table id", Lost: "nothing is lost: every snapshot has the id",
			Damage: texts(err)})
	case err != nil && isDamage(err):
		p.add(&Item{Action: Leave, Kind: "table id", Damage: texts(err),
			Lost: "move " + names.TableRoot(p.t.Table) + " away by hand, and run this again: it is made anew"})
	case err != nil:
		return look(err)
	}
	return nil
}

// note returns what the listing is to say of an item.
func (i *Item) note() catalog.Repaired {
	out := catalog.Repaired{ID: i.ID, Rows: i.Rows, What: i.String() + ": " + i.Lost}
	const more = " ..." // features, as a rule
	if len(out.What) > catalog.MaxRepairedText {
		out.What = strings.ToValidUTF8(out.What[:catalog.MaxRepairedText-len(more)], "") + more
	}
	if i.Action == GoBack {
		out.First, out.Last = i.First, i.Last
	}
	return out
}

// String names what is damaged.
func (i *Item) String() string {
	out := i.Kind
	switch {
	case i.Kind == "snapshots" && i.Last == 0:
		return out
	case i.Kind == "snapshots" && i.First == i.Last:
		return fmt.Sprintf("snapshot %d", i.First)
	case i.Kind == "snapshots":
		return fmt.Sprintf("snapshots %d to %d", i.First, i.Last)
	}
	if i.Overlay != "" {
		out += " of overlay " + i.Overlay
	}
	if i.Name != "" {
		out += " " + i.Name
	}
	if i.ID != "" {
		out += " " + i.ID
	}
	if i.Partition != "" {
		out += " of " + i.Partition
	}
	return out
}
