package usage

import (
	"cmp"

	"github.com/dsistore/dsistore/storage/catalog"
)

// A tally adds up readers of one key and of the same features on a day, until a sum takes it over. A reader is added
// when it is closed: one step per feature without look-ups, since the features have the same positions. Sums look
// features up by id, and are made of tallies in the background.
type tally struct {
	key        Key // as the readers have it: not cleaned
	day        day
	features   []Feature // borrowed of the first reader
	snapshot   uint64
	start, end int64 // seconds
	counters   Counters
	counted    int64 // second at which a reader was last counted among the Readers, plus 1; 0: none was
	uses       Uses
}

const (
	// With more than maxTallies tallies, or more than maxTallyPositions features of all of them, all become sums at
	// once.
	maxTallies        = 64
	maxTallyPositions = 1 << 18
)

// tallyOf returns the tally that a reader is added to. The caller has the lock.
func (w *Writer) tallyOf(key *Key, d day, features []Feature) *tally {
	for i := len(w.tallies) - 1; i >= 0; i-- {
		if t := w.tallies[i]; t.day == d && t.key == *key && sameFeatures(t.features, features) {
			return t
		}
	}
	if len(w.tallies) >= maxTallies || len(w.tallies) > 0 && w.positions+len(features) > maxTallyPositions {
		for _, t := range w.takeTallies() {
			w.add(t.record(w.opts.User, w.host()))
		}
	}
	t := &tally{key: *key, day: d, features: features}
	t.uses.list = make([]use, len(features))
	w.tallies = append(w.tallies, t)
	w.positions += len(features)
	return t
}

// takeTallies takes the tallies away. The caller has the lock.
func (w *Writer) takeTallies() []*tally {
	out := w.tallies
	w.tallies, w.positions = nil, 0
	return out
}

func sameFeatures(a, b []Feature) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] { // of one layout
		return true
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// add adds what a reader has done from one second to another.
func (t *tally) add(c *Counters, snapshot uint64, start, end int64) {
	if t.counters == (Counters{}) {
		t.start, t.end = start, end
	}
	t.start, t.end = min(t.start, start), max(t.end, end)
	t.snapshot = max(t.snapshot, snapshot)
	t.counters.add(c)
	if c.Readers > 0 {
		t.counted = max(t.counted, end+1)
	}
}

// record makes a clean record of the tally, of user where its key names none. A feature that is there twice becomes
// one.
func (t *tally) record(user, host string) *Record {
	r := &Record{
		Key: t.key, Snapshot: t.snapshot, Start: seconds(t.start), End: seconds(t.end), Host: host, PID: processID,
		Counters: t.counters, Features: make([]FeatureUse, 0, len(t.features)),
	}
	r.User = cmp.Or(r.User, user)
	positions := make(map[catalog.FeatureID]int, len(t.features))
	for i, f := range t.features {
		x := &t.uses.list[i]
		last := max(x.last, t.counted)
		if f.ID == 0 || last == 0 {
			continue
		}
		u := FeatureUse{
			ID: f.ID, Name: f.Name, Stripes: x.stripes, Rows: x.rows, BytesNeeded: x.needed, BytesUnneeded: x.unneeded,
			Last: seconds(last - 1),
		}
		at, ok := positions[f.ID]
		if !ok {
			positions[f.ID] = len(r.Features)
			u.Readers = t.counters.Readers
			r.Features = append(r.Features, u)
			continue
		}
		r.Features[at].add(&u)
	}
	r.clean()
	return r
}
