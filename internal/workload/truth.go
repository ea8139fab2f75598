package workload

import (
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
)

// A Truth says what the table of some Options holds, without a file. Its rows are numbered in the order in which
// Generate writes them: partition by partition, file by file. It remembers the window and feature asked for last, so
// asking in runs is cheap. Not safe for concurrent use.
type Truth struct {
	options   Options
	root      uint64
	features  []Feature
	byName    map[string]int
	windows   []windowSlot
	window    window
	maker     maker
	made      int // the feature that maker is set to, or -1
	positions []int32
}

// NewTruth returns the Truth of a table.
func NewTruth(o Options) (*Truth, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	t := &Truth{options: o, root: join(mix(o.Seed), Version), features: plan(o), windows: layOut(o), made: -1}
	t.byName = make(map[string]int, len(t.features))
	for i := range t.features {
		t.byName[t.features[i].Name] = i
	}
	t.window.index = -1
	t.maker.root = t.root
	t.maker.users = uint32(min(o.Rows/8+1, 1<<31))
	return t, nil
}

// Rows returns the number of rows.
func (t *Truth) Rows() int64 { return t.options.Rows }

// Options returns the Options with every default filled in.
func (t *Truth) Options() Options { return t.options }

// Features returns the columns of the table in file order: keys, labels, sparse, dense, embedding. Borrowed: do not
// write.
func (t *Truth) Features() []Feature { return t.features }

// Feature returns the number of the named feature.
func (t *Truth) Feature(name string) (int, error) {
	i, ok := t.byName[name]
	if !ok {
		return 0, fmt.Errorf("feature %q: the table has none of that name", name)
	}
	return i, nil
}

// Append appends rows [from, to) of a feature to c, whose Type must be the feature's; c is plain (no inverse).
func (t *Truth) Append(c *vector.Column, feature int, from, to int64) error {
	if feature < 0 || feature >= len(t.features) {
		return fmt.Errorf("feature %d: want 0 to %d", feature, len(t.features)-1)
	}
	if from < 0 || to < from || to > t.Rows() {
		return fmt.Errorf("rows [%d, %d): want a range of [0, %d)", from, to, t.Rows())
	}
	f := &t.features[feature]
	if c.Type != f.Type || c.Inverse != nil {
		return fmt.Errorf("feature %s: the column is %v; want a plain column of %v", f.Name, c.Type, f.Type)
	}
	for from < to {
		w := t.enter(from)
		lo := int(from - w.first)
		n := int(min(to-from, int64(w.rows-lo)))
		t.use(feature)
		t.maker.appendTo(c, t.order(lo, lo+n))
		from += int64(n)
	}
	return nil
}

// Column returns rows [from, to) of a feature. Owned.
func (t *Truth) Column(feature int, from, to int64) (*vector.Column, error) {
	if feature < 0 || feature >= len(t.features) {
		return nil, fmt.Errorf("feature %d: want 0 to %d", feature, len(t.features)-1)
	}
	c := vector.NewColumn(t.features[feature].Type)
	return c, t.Append(c, feature, from, to)
}

// A Row says where a row comes from.
type Row struct {
	Partition int
	Session   int64 // the session's key, which SessionColumn holds
	Step      int   // the sample's number in its session
	Item      int32 // the item shown
	Arrival   int64 // the row's number in the interleaved table of the same Options
}

// Row returns where a row comes from.
func (t *Truth) Row(row int64) (Row, error) {
	if row < 0 || row >= t.Rows() {
		return Row{}, fmt.Errorf("row %d: want 0 to %d", row, t.Rows()-1)
	}
	w := t.enter(row)
	place := t.order(int(row-w.first), int(row-w.first)+1)[0]
	return Row{
		Partition: w.partition, Session: int64(w.session[w.of[place]] >> 1), Step: w.step(place),
		Item: w.item[place], Arrival: w.first + int64(w.arrival[place]),
	}, nil
}

// enter makes the window that holds a row the current one.
func (t *Truth) enter(row int64) *window {
	if w := &t.window; w.index >= 0 && row >= w.first && row < w.first+int64(w.rows) {
		return w
	}
	lo, hi := 0, len(t.windows)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; t.windows[mid].first <= row {
			lo = mid
		} else {
			hi = mid
		}
	}
	t.window.build(t.root, t.windows[lo], t.options.SamplesPerSession)
	t.made = -1
	return &t.window
}

// use sets the maker to a feature of the current window.
func (t *Truth) use(feature int) {
	if t.made != feature {
		t.maker.reset(&t.window, &t.features[feature])
		t.made = feature
	}
}

// order returns the positions of rows [lo, hi) of the current window, in the order of the table. Borrowed.
func (t *Truth) order(lo, hi int) []int32 {
	if t.options.Order == Interleaved {
		return t.window.order[lo:hi]
	}
	t.positions = t.positions[:0]
	for i := lo; i < hi; i++ {
		t.positions = append(t.positions, int32(i))
	}
	return t.positions
}
