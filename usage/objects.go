package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

const (
	// objectsAtOnce are read at a time, and daysAtOnce at the most.
	objectsAtOnce = 16
	daysAtOnce    = 8
	// maxPasses bounds how often a day is listed again because what was listed was gone.
	maxPasses = 20
)

// heldBytes bounds the bytes of the objects that are held at once; a larger one is held alone. Decoded they take a few
// times as much: 24 bytes for each name of a feature beside its text. Tests make it small.
var heldBytes int64 = 32 << 20

// A span is days [since, until).
type span struct{ since, until day }

// spanOf returns the days from that of since to the one before until; zero times are no bounds.
func spanOf(since, until time.Time) span {
	s := span{0, math.MaxInt64}
	if !since.IsZero() {
		s.since = dayOf(since)
	}
	if !until.IsZero() {
		s.until = dayOf(until)
		if until.Unix() > int64(s.until)*daySeconds {
			s.until++
		}
	}
	return s
}

func (s span) has(d day) bool { return d >= s.since && d < s.until }

// objects are those of a day, as they were listed.
type objects struct {
	rollups []objectName        // the largest number first
	records map[id][]objectName // the largest sequence first
}

func newObjects() *objects { return &objects{records: map[id][]objectName{}} }

func (o *objects) add(p objectName) {
	if p.rollup {
		o.rollups = append(o.rollups, p)
	} else {
		o.records[p.id] = append(o.records[p.id], p)
	}
}

func (o *objects) sort() {
	later := func(a, b objectName) int { return cmp.Compare(b.sequence, a.sequence) }
	slices.SortFunc(o.rollups, later)
	for _, all := range o.records {
		slices.SortFunc(all, later)
	}
}

// ids returns those that there are records of, in order.
func (o *objects) ids() []id { return sortedIDs(o.records) }

func sortedIDs[V any](m map[id]V) []id {
	return slices.SortedFunc(maps.Keys(m), func(a, b id) int { return slices.Compare(a[:], b[:]) })
}

// listDays lists all objects of the days, by day.
func listDays(ctx context.Context, t *storage.Table, in span) (map[day]*objects, error) {
	out := map[day]*objects{}
	if err := list(ctx, t, t.UsagePrefix(), in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// listDay lists the objects of a day.
func listDay(ctx context.Context, t *storage.Table, d day) (*objects, error) {
	out, only, prefix := map[day]*objects{}, span{d, d + 1}, t.UsagePrefix()
	// Records first: what a rollup has merged meanwhile is gone from them, or named in it.
	for _, p := range [...]string{prefix + d.String() + "/", prefix + rollupDir + d.String() + "-"} {
		if err := list(ctx, t, p, only, out); err != nil {
			return nil, err
		}
	}
	if out[d] == nil {
		return newObjects(), nil
	}
	return out[d], nil
}

func list(ctx context.Context, t *storage.Table, prefix string, in span, out map[day]*objects) error {
	for info, err := range t.Store().Blobs().List(ctx, prefix, "") {
		if err != nil {
			return err
		}
		p, ok := parseObjectName(t.UsagePrefix(), info.Name)
		if !ok || !in.has(p.day) {
			continue
		}
		p.size, p.modTime = info.Size, info.ModTime
		if out[p.day] == nil {
			out[p.day] = newObjects()
		}
		out[p.day].add(p)
	}
	for _, o := range out {
		o.sort()
	}
	return nil
}

// read reads and checks one object. ErrNotFound: it is gone. Of a damaged one the error is a format.CorruptError, of a
// newer version a format.UnsupportedError.
func read(ctx context.Context, t *storage.Table, p objectName) (*decoded, error) {
	if p.size > maxObject {
		return nil, &format.CorruptError{Object: p.name, Stripe: -1, Offset: -1,
			Reason: fmt.Sprintf("%d bytes: usage records have at most %d", p.size, maxObject)}
	}
	b := make([]byte, p.size)
	if err := t.Store().Blobs().ReadAt(ctx, p.name, b, 0); errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, &format.CorruptError{Object: p.name, Stripe: -1, Offset: -1, Reason: "the object ends early"}
	} else if err != nil {
		return nil, err
	}
	d, err := decode(p.name, b)
	if err != nil {
		return nil, err
	}
	if kind := d.kind == rollupKind; kind != p.rollup || d.day != p.day {
		return nil, &format.CorruptError{Object: p.name, Stripe: -1, Offset: headBytes,
			Reason: "it is of another kind or day than its name says"}
	}
	return d, nil
}

// A result is what came of reading an object.
type result struct {
	from    objectName
	decoded *decoded
	err     error
}

// readAll reads objects side by side. The error is that of a ctx that ended; others are in the results.
func readAll(ctx context.Context, t *storage.Table, names []objectName) ([]result, error) {
	out := make([]result, len(names))
	var g errgroup.Group
	g.SetLimit(objectsAtOnce)
	for i, p := range names {
		g.Go(func() error {
			out[i].from = p
			out[i].decoded, out[i].err = read(ctx, t, p)
			return nil
		})
	}
	_ = g.Wait()
	return out, ctx.Err()
}

// inTurns cuts names into parts of at most so many bytes, or one name.
func inTurns(names []objectName, most int64) iter.Seq[[]objectName] {
	return func(yield func([]objectName) bool) {
		for len(names) > 0 {
			n, bytes := 1, names[0].size
			for n < len(names) && bytes+names[n].size <= most {
				bytes += names[n].size
				n++
			}
			if !yield(names[:n]) {
				return
			}
			names = names[n:]
		}
	}
}

// bytes returns how large what counts of a day is, as far as the listing says.
func (o *objects) bytes() int64 {
	var n int64
	if len(o.rollups) > 0 {
		n = o.rollups[0].size
	}
	for _, all := range o.records {
		n += all[0].size
	}
	return n
}

// readDay gives the objects of a day that count to take, the rollup first. It reads no more than heldBytes ahead.
// listed is the day's listing; nil: it is not listed yet. Where a listed object is gone, readDay calls anew and reads
// the day again: the caller drops what take was given.
func readDay(ctx context.Context, t *storage.Table, d day, listed *objects, anew func(),
	take func(*decoded)) (*Coverage, error) {
	for pass := 0; ; pass++ {
		if listed == nil {
			var err error
			if listed, err = listDay(ctx, t, d); err != nil {
				return nil, err
			}
		}
		out, gone, err := readListed(ctx, t, listed, pass == maxPasses, take)
		if err != nil || !gone {
			return out, err
		}
		anew()
		listed = nil
	}
}

// readListed is readDay for a listing. gone: a listed object is not there any more. With last such objects are passed
// over.
func readListed(ctx context.Context, t *storage.Table, listed *objects, last bool,
	take func(*decoded)) (out *Coverage, gone bool, err error) {
	out = &Coverage{}
	passOver := func(r result) {
		if errors.Is(r.err, object.ErrNotFound) && !last {
			gone = true
			return
		}
		out.damage(r.from.name, r.err)
	}
	merged := map[id]bool{}
	// Of a damaged rollup the one before may be there yet.
	for _, p := range listed.rollups {
		d, err := read(ctx, t, p)
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if err == nil {
			out.Rollups++
			for _, m := range d.merged {
				if listed.records[m.id] != nil {
					merged[m.id] = true
				}
			}
			take(d)
			break
		}
		if passOver(result{p, nil, err}); gone {
			return nil, true, nil
		}
	}
	var names []objectName
	for _, i := range listed.ids() {
		if !merged[i] {
			names = append(names, listed.records[i][0])
		}
	}
	for some := range inTurns(names, heldBytes) {
		results, err := readAll(ctx, t, some)
		if err != nil {
			return nil, false, err
		}
		for i, r := range results {
			results[i] = result{} // it need not be held until all are taken
			if r.err != nil {
				passOver(r)
				continue
			}
			out.Records++
			take(r.decoded)
		}
		if gone {
			return nil, true, nil
		}
	}
	return out, false, nil
}

// Walk gives the records of a table to visit, day by day from that of since to the one before until (UTC; zero times:
// all). They are those of processes, and those of rollups. Of a day with more than 32 MiB outside of its rollup they
// are what a rollup would make of them. A record is valid until visit returns. An error of visit ends the walk. Objects
// that are damaged or cannot be read are passed over; the Coverage names them.
func Walk(ctx context.Context, t *storage.Table, since, until time.Time,
	visit func(day time.Time, r *Record) error) (*Coverage, error) {
	wrong := func(err error) (*Coverage, error) { return nil, fmt.Errorf("usage records of %s: %w", t.Name(), err) }
	out := &Coverage{}
	days, err := listDays(ctx, t, spanOf(since, until))
	if err != nil {
		return wrong(err)
	}
	for left := sortedKeys(days); len(left) > 0; {
		n, bytes := 0, int64(0)
		for n < min(len(left), daysAtOnce) && bytes+days[left[n]].bytes() <= heldBytes {
			bytes += days[left[n]].bytes()
			n++
		}
		large := n == 0 // the first day cannot be held: its records are added up as they are read
		n = max(n, 1)
		sums, held, coverages := map[Key]*sum{}, make([][]*decoded, n), make([]*Coverage, n)
		var g errgroup.Group
		for i, d := range left[:n] {
			anew, take := func() { held[i] = nil }, func(d *decoded) { held[i] = append(held[i], d) }
			if large {
				anew, take = func() { clear(sums) }, func(d *decoded) { addTo(sums, d) }
			}
			g.Go(func() (err error) {
				coverages[i], err = readDay(ctx, t, d, days[d], anew, take)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return wrong(err)
		}
		for i, all := range held {
			out.add(coverages[i])
			day := left[i].start()
			for _, f := range all {
				if err := f.each(func(record *Record) error { return visit(day, record) }); err != nil {
					return nil, err
				}
			}
			held[i] = nil
		}
		for _, s := range sums {
			if err := visit(left[0].start(), &s.Record); err != nil {
				return nil, err
			}
		}
		left = left[n:]
	}
	return out, nil
}

func (c *Coverage) add(o *Coverage) {
	c.Records += o.Records
	c.Rollups += o.Rollups
	c.Add(Damages{o.Damaged[:min(len(o.Damaged), maxDamaged-len(c.Damaged))], o.DamagedCount})
}

// Verify reads every object, also those that Load does not need, and says which are damaged.
func Verify(ctx context.Context, t *storage.Table) (*Coverage, error) {
	out := &Coverage{}
	days, err := listDays(ctx, t, spanOf(time.Time{}, time.Time{}))
	if err != nil {
		return nil, fmt.Errorf("usage records of %s: %w", t.Name(), err)
	}
	for _, d := range sortedKeys(days) {
		names := days[d].rollups
		for _, i := range days[d].ids() {
			names = append(names, days[d].records[i]...)
		}
		for some := range inTurns(names, heldBytes) {
			results, err := readAll(ctx, t, some)
			if err != nil {
				return nil, err
			}
			for _, r := range results {
				switch {
				case errors.Is(r.err, object.ErrNotFound):
				case r.err != nil:
					out.damage(r.from.name, r.err)
				case r.from.rollup:
					out.Rollups++
				default:
					out.Records++
				}
			}
		}
	}
	return out, nil
}
