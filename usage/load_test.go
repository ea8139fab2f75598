package usage

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
)

// padded is an object of records of a process that takes about so many bytes, most of them names of features, which all
// processes share.
func padded(job string, bytes int) []byte {
	f := file{kind: recordsKind, day: dayOf(noon), written: 1}
	r := &Record{Key: Key{Job: job, Purpose: PurposeRead}, Start: noon, End: noon,
		Counters: Counters{Readers: 1, Rows: 1}}
	for i := range bytes / 4000 {
		r.Features = append(r.Features, FeatureUse{ID: catalog.FeatureID(i + 1), Name: fmt.Sprintf("%03980d", i),
			Readers: 1, Stripes: 2, BytesNeeded: 3, Last: noon})
	}
	f.records = []*Record{r}
	return f.append(nil)
}

// holding makes heldBytes small.
func holding(t *testing.T, bytes int64) {
	before := heldBytes
	heldBytes = bytes
	t.Cleanup(func() { heldBytes = before })
}

// A counting is a store that counts what was read of records.
type counting struct {
	object.Store
	mu    sync.Mutex
	bytes int64             // guarded by mu, as what follows
	gone  func(name string) // called before a read
}

func (c *counting) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	c.mu.Lock()
	c.bytes += int64(len(p))
	gone := c.gone
	c.mu.Unlock()
	if gone != nil {
		gone(name)
	}
	return c.Store.ReadAt(ctx, name, p, off)
}

// TestLoadIsBounded: however many processes read on however many days, no more than heldBytes of their records is held;
// a day of more is added up as it is read.
func TestLoadIsBounded(t *testing.T) {
	const (
		processes = 90
		size      = 16 << 10
	)
	holding(t, 512<<10)
	blobs := &counting{Store: object.NewMemory()}
	table := tableIn(t, blobs)
	prefix := table.UsagePrefix()
	b := padded("train", size)
	days := map[string]int{}
	for d, n := range []int{3, processes, 20, 20, 20, 1} {
		at := dayOf(noon) + day(d)
		f, err := decode("x", b)
		if err != nil {
			t.Fatal(err)
		}
		o := file{kind: recordsKind, day: at, written: 1}
		if err := f.each(func(r *Record) error {
			c := *r
			c.Start, c.End = at.start(), at.start()
			for i := range c.Features {
				c.Features[i].Last = at.start()
			}
			o.records = []*Record{&c}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		dated := o.append(nil)
		for i := range n {
			put(t, table, recordsName(prefix, at, id{byte(i), byte(d)}, 1), dated)
		}
		days[at.String()] = n
	}
	var ahead, given int64 // of the bytes read, those that visit has seen
	rows := map[string]int{}
	coverage, err := Walk(t.Context(), table, time.Time{}, time.Time{}, func(at time.Time, r *Record) error {
		given += int64(r.Readers) * int64(len(b))
		blobs.mu.Lock()
		ahead = max(ahead, blobs.bytes-given)
		blobs.mu.Unlock()
		rows[at.Format(dayFormat)] += int(r.Rows)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if ahead > heldBytes || ahead == 0 {
		t.Errorf("%d bytes were read and not yet given: want at most %d", ahead, heldBytes)
	}
	if fmt.Sprint(rows) != fmt.Sprint(days) || coverage.Records != processes+64 || coverage.DamagedCount != 0 {
		t.Errorf("%v, want %v; %+v", rows, days, coverage)
	}
	// Nothing is held back of a large day: of what is read no more than a part is there when the next part is.
	if held := heldBy(t, table, blobs, int64(len(b))); held > heldBytes || held == 0 {
		t.Errorf("%d bytes of a day's objects are read at once", held)
	}
	x := load(t, table)
	if f := x.Features[0]; x.Total.Rows != processes+64 || f.Readers != processes+64 || f.Stripes != 2*(processes+64) ||
		f.Days != 6 {
		t.Errorf("%+v, %+v", x.Total, f)
	}
}

// heldBy returns the most bytes that were read of the objects of the largest day, of so many bytes each, and not yet
// taken.
func heldBy(t *testing.T, table *storage.Table, blobs *counting, size int64) (most int64) {
	blobs.bytes = 0
	taken := int64(0)
	_, err := readDay(t.Context(), table, dayOf(noon)+1, nil, func() {}, func(*decoded) {
		blobs.mu.Lock()
		defer blobs.mu.Unlock()
		most = max(most, blobs.bytes-taken)
		taken += size
	})
	if err != nil {
		t.Fatal(err)
	}
	return most
}

// TestLoadOfWhatChanges: of a large day an object that is replaced, and then a rollup, while the day is read:
// everything counts once.
func TestLoadOfWhatChanges(t *testing.T) {
	holding(t, 512<<10)
	blobs := &counting{Store: object.NewMemory()}
	table := tableIn(t, blobs)
	prefix, d := table.UsagePrefix(), dayOf(noon)
	b := padded("train", 32<<10)
	for i := range 40 {
		put(t, table, recordsName(prefix, d, id{byte(i)}, 1), b)
	}
	changes := []func(){
		func() { // the last, of what is read in the last part
			put(t, table, recordsName(prefix, d, id{39}, 2), b)
			if err := blobs.Store.Delete(t.Context(), recordsName(prefix, d, id{39}, 1)); err != nil {
				t.Error(err)
			}
		},
		func() {
			if _, err := Rollup(t.Context(), table, RollupOptions{MinAge: -1}); err != nil {
				t.Error(err)
			}
		},
	}
	reads := 0
	blobs.gone = func(name string) {
		blobs.mu.Lock()
		reads++
		var change func()
		if strings.Contains(name, fmt.Sprintf("/%x", 39)) && len(changes) > 0 {
			change, changes, blobs.gone = changes[0], changes[1:], nil
		}
		gone := blobs.gone
		blobs.mu.Unlock()
		if change == nil {
			return
		}
		change()
		blobs.mu.Lock()
		blobs.gone = gone
		blobs.mu.Unlock()
	}
	again := blobs.gone
	for range 2 {
		blobs.mu.Lock()
		blobs.gone = again
		blobs.mu.Unlock()
		x := load(t, table)
		if x.Total.Rows != 40 || x.Features[0].Readers != 40 || x.DamagedCount != 0 {
			t.Errorf("%+v, %+v", x.Total, x.Coverage)
		}
	}
	if len(changes) > 0 || reads <= 40 {
		t.Errorf("%d changes were not made, %d reads", len(changes), reads)
	}
}
