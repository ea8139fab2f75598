package simulate

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// A model says what the tables must hold: for each snapshot the rows that the commits up to it mean, in the order of
// their numbers. It knows what every commit was to do, and from the store only which commit made which snapshot. It
// shares no code with what it tests.
type model struct {
	r  *run
	mu sync.Mutex // guards what machines touch: intents, leases, and madeSegments

	tables   map[string]*tableModel
	intents  map[string]*intent
	segments map[string]*segmentModel // that were read once, whole
	busy     bool                     // a check is under way, which changes nothing
	grace    time.Duration            // the shortest that a gc was told
	labels   map[int64]map[int64]bool // by row: those that an overlay ever had for it
	strayed  map[string]bool          // objects that a request put which came late
}

func newModel(r *run) *model {
	return &model{r: r, tables: map[string]*tableModel{}, intents: map[string]*intent{},
		segments: map[string]*segmentModel{}, grace: grace,
		labels: map[int64]map[int64]bool{}, strayed: map[string]bool{}}
}

func (m *model) lock()   { m.mu.Lock() }
func (m *model) unlock() { m.mu.Unlock() }

// A tableModel is what is known of the table of a name.
type tableModel struct {
	name     string
	versions map[uint64]*version // the snapshots, expired ones too
	newest   uint64
	removals int    // how often it was removed by hand
	oldest   uint64 // that has not expired
	purged   bool   // somebody has begun to purge it: what has expired may go at once
	leases   []*leaseModel
	endings  map[string]bool // leases that somebody has begun to end

	erased    map[int64]bool // rows that somebody has begun to erase; true: and was told that they are gone
	compacted bool           // somebody has begun to compact it
}

// A version is a snapshot that can be, or could be, read.
type version struct {
	number  uint64
	made    string // the operation of the commit that made it
	state   *state
	expired time.Time       // by the store's clock; zero: it has not
	needs   map[string]bool // the objects that were touched when it was read, whole
}

// A leaseModel is a lease that somebody was told that he has.
type leaseModel struct {
	id     string
	number uint64
	until  time.Time // by the store's clock: at least so long it holds
	ended  bool
}

// A state is the rows of a version.
type state struct {
	rows     map[int64]rowModel
	overlays map[string]map[int64]int64 // by name: the labels of rows
	lists    map[string]map[int64]bool  // by name: its rows
	branches map[string]uint64          // by name: the snapshot that it reads
}

type rowModel struct {
	partition string // unsettled: not known before the commit is there
	label     value  // of overlays that became part of the table
}

const unsettled = "unsettled"

func (s *state) clone() *state {
	return &state{maps.Clone(s.rows), maps.Clone(s.overlays), maps.Clone(s.lists), maps.Clone(s.branches)}
}

func emptyState() *state {
	return &state{map[int64]rowModel{}, map[string]map[int64]int64{}, map[string]map[int64]bool{}, map[string]uint64{}}
}

// An intent is what a commit is to do, before anybody knows whether it was made.
type intent struct {
	operation string // by which its snapshot is known, or, where others use it too, by the machine that put it
	table     string
	// of the table that the handle was of when it was used first; -1: it was not
	removals int
	apply    func(s *state, number uint64) // on a clone; number is its snapshot's

	repeats       bool     // it makes several snapshots
	dropsBranches bool     // it may drop any
	partitions    []string // of its unsettled rows

	made    uint64 // the snapshot; 0: none that is known of
	refused error  // it must never be made
}

// neutral are the operations of commits that the code makes by itself. They change no row.
var neutral = []string{"expire", "forget", "erased", "compact", "gc", "repair"}

func (m *model) table(name string) *tableModel {
	t := m.tables[name]
	if t == nil {
		t = &tableModel{name: name, versions: map[uint64]*version{}}
		m.tables[name] = t
	}
	return t
}

// intend notes a commit that is about to be tried.
func (m *model) intend(i *intent) {
	m.lock()
	defer m.unlock()
	m.intents[i.operation] = i
}

// committed holds what a commit returned against what is there. excused: the error says that the outcome is not known.
func (m *model) committed(i *intent, number uint64, err error, excused bool) {
	m.lock()
	defer m.unlock()
	t := m.table(i.table)
	switch {
	case err == nil && i.made != number:
		m.r.fail(fmt.Errorf("commit %q to table %s was acknowledged as snapshot %d: %s", i.operation, i.table, number,
			t.madeText(i.made)))
	case err == nil && i.removals >= 0 && i.removals != t.removals:
		m.r.fail(fmt.Errorf("commit %q to table %s, by a handle of the one that was removed, was acknowledged as "+
			"snapshot %d", i.operation, i.table, number))
	case err == nil || excused:
	case i.made != 0:
		m.r.fail(fmt.Errorf("commit %q to table %s was refused (%w), and snapshot %d is it", i.operation, i.table, err,
			i.made))
	default:
		i.refused = err
	}
}

func (t *tableModel) madeText(number uint64) string {
	if number == 0 {
		return "no snapshot is it"
	}
	return fmt.Sprintf("snapshot %d is it", number)
}

// next is the state after a commit of the given operation.
func (m *model) next(t *tableModel, operation string, number uint64, by *intent) (*state, *intent, error) {
	before := emptyState()
	if v := t.versions[t.newest]; v != nil {
		before = v.state
	}
	m.lock()
	defer m.unlock()
	i := m.intents[operation]
	// An erasure that only drops branches says so.
	if by != nil && (by.operation == operation || by.dropsBranches && operation == "branch") {
		i = by
	}
	switch {
	case i == nil && slices.Contains(neutral, operation):
		return before, nil, nil
	case i == nil || i.table != t.name:
		return nil, nil, fmt.Errorf("snapshot %d of table %s was made by %q, which nobody has tried", number, t.name,
			operation)
	case i.refused != nil:
		return nil, nil, fmt.Errorf("commit %q to table %s was refused (%w), and snapshot %d is it", operation, t.name,
			i.refused, number)
	case i.made != 0 && !i.repeats:
		return nil, nil, fmt.Errorf("commit %q to table %s was made twice: snapshots %d and %d", operation, t.name,
			i.made, number)
	}
	i.made = number
	after := before.clone()
	i.apply(after, number)
	return after, i, nil
}

// protected says by what a version must be there; empty: it may go.
func (m *model) protected(t *tableModel, v *version) string {
	now := m.r.storeTime()
	newest := t.versions[t.newest]
	switch {
	case v.number == t.newest:
		return "it is the newest"
	case v.number >= t.oldest:
		return "it has not expired"
	case !t.purged && now.Before(v.expired.Add(m.grace)):
		return "it expired " + shortTime(now.Sub(v.expired)) + " ago, within the grace period"
	}
	for name, n := range newest.state.branches {
		if n == v.number {
			return "branch " + name + " reads it"
		}
	}
	m.lock()
	defer m.unlock()
	for _, l := range t.leases {
		if l.number == v.number && !l.ended && now.Before(l.until) {
			return "a lease holds it for " + shortTime(l.until.Sub(now)) + " more"
		}
	}
	return ""
}

// removed notes that somebody has taken away all objects of the table: what comes now is another table of the same
// name.
func (m *model) removed(name string) {
	m.lock()
	defer m.unlock()
	t := m.table(name)
	*t = tableModel{name: name, versions: map[uint64]*version{}, removals: t.removals + 1}
}

// purging notes that a purge of the table, or an erasure, begins.
func (m *model) purging(name string) {
	m.lock()
	defer m.unlock()
	m.table(name).purged = true
}

// collecting notes that a gc with the grace period begins.
func (m *model) collecting(grace time.Duration) {
	m.lock()
	defer m.unlock()
	m.grace = min(m.grace, grace)
}

// leased notes that somebody was given a lease that lasts until a time at least.
func (m *model) leased(name, id string, number uint64, until time.Time) *leaseModel {
	m.lock()
	t := m.table(name)
	l := &leaseModel{id: id, number: number, until: until, ended: t.endings[id]}
	t.leases = append(t.leases, l)
	v := t.versions[number]
	m.unlock()
	if v != nil && m.protected(t, v) != "" {
		m.whole(t, v, "a lease on it was just given")
	}
	return l
}

// version returns what is known of a snapshot; nil: nothing is.
func (m *model) version(name string, number uint64) (*tableModel, *version) {
	m.lock()
	defer m.unlock()
	t := m.table(name)
	return t, t.versions[number]
}

// stands reports whether a version is still one of its table: nobody has removed it.
func (m *model) stands(t *tableModel, v *version) bool {
	m.lock()
	defer m.unlock()
	return t.versions[v.number] == v
}

func (m *model) leaseEnds(l *leaseModel) {
	m.lock()
	defer m.unlock()
	l.ended = true
}

func (m *model) leaseLasts(name string, l *leaseModel, until time.Time) {
	m.lock()
	if until.After(l.until) {
		l.until = until
	}
	t := m.table(name)
	v := t.versions[l.number]
	m.unlock()
	if v != nil && !l.ended && m.protected(t, v) != "" {
		m.whole(t, v, "a lease on it was just renewed")
	}
}

// ending notes that somebody begins to end a lease in place of its owner.
func (m *model) ending(name, id string) {
	m.lock()
	defer m.unlock()
	t := m.table(name)
	if t.endings == nil {
		t.endings = map[string]bool{}
	}
	t.endings[id] = true
	for _, l := range t.leases {
		l.ended = l.ended || l.id == id
	}
}

// sortedRows are the numbers of the rows.
func (s *state) sortedRows() []int64 { return slices.Sorted(maps.Keys(s.rows)) }
