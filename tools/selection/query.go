package selection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/usage"
)

// ErrQuery is matched when a query, or a list's name, is invalid for any table.
var ErrQuery = errors.New("the query for rows is invalid")

// A queryError says what is wrong with a query. It matches ErrQuery.
type queryError string

func (e queryError) Error() string        { return string(e) }
func (e queryError) Is(target error) bool { return target == ErrQuery }

func badQuery(format string, args ...any) error { return queryError(fmt.Sprintf(format, args...)) }

// A Query selects the rows that match all its parts. It has at least one.
type Query struct {
	// Partition is a predicate over partition values, as reader.PlanOptions.Partition. Default: every partition.
	Partition string
	// Where is a predicate over features, as reader.PlanOptions.Filter. Default: every row.
	Where string
	// Lists joins sample lists of the table: names with AND, OR, NOT and parentheses, a name with other than letters,
	// digits and _ in double quotes. Default: every row.
	Lists string
	// Keys are keys of rows: a row matches one of them. Default: every row.
	Keys *KeySource
}

// Validate returns an error, which matches ErrQuery, when the query has no part, or one that is invalid for any table.
func (q *Query) Validate() error {
	if q.Partition == "" && q.Where == "" && q.Lists == "" && q.Keys == nil {
		return badQuery("no row is named: want a filter, partitions, sample lists or keys")
	}
	if q.Lists != "" {
		if _, err := parseLists(q.Lists); err != nil {
			return err
		}
	}
	if q.Keys != nil {
		return q.Keys.validate()
	}
	return nil
}

// maxDefinition is how long a sample list's definition gets.
const maxDefinition = 4096

// String prints the query for people: the definition of the list that Create makes of it.
func (q *Query) String() string {
	var parts []string
	add := func(label, s string) {
		if s != "" {
			parts = append(parts, label+s)
		}
	}
	add("", q.Where)
	add("partitions ", q.Partition)
	add("lists ", q.Lists)
	if q.Keys != nil {
		add("keys ", q.Keys.String())
	}
	s := strings.ToValidUTF8(strings.Join(parts, "; "), "?")
	if len(s) > maxDefinition {
		s = strings.ToValidUTF8(s[:maxDefinition-4], "") + " ..."
	}
	return s
}

// A Selection is the rows of a snapshot that a query selects. Borrowed: do not write.
type Selection struct {
	Snapshot *storage.Snapshot
	// Segments are those that have such rows, in the table's order.
	Segments []reader.SegmentRows
	Rows     uint64 // of all
	// Pruning is the cost of Where; nil: there is none.
	Pruning *reader.Pruning
	// Keys says what became of the keys; nil: there are none.
	Keys *KeyReport
}

// Find returns the rows of a snapshot that the query selects. Its reads are recorded as read.Usage says, with the
// purpose of counting unless that names another.
func (q *Query) Find(ctx context.Context, snap *storage.Snapshot, read reader.Options) (*Selection, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	read.Usage.Purpose = cmp.Or(read.Usage.Purpose, usage.PurposeCount)
	m, err := reader.Matching(ctx, snap, reader.PlanOptions{Partition: q.Partition, Filter: q.Where},
		reader.LayoutOptions{Read: read})
	if err != nil {
		return nil, err
	}
	out := &Selection{Snapshot: snap, Segments: m.Segments, Rows: m.Rows, Pruning: m.Pruning}
	if q.Lists != "" {
		lists, err := parseLists(q.Lists)
		if err != nil {
			return nil, err
		}
		if err := lists.restrict(ctx, out); err != nil {
			return nil, err
		}
	}
	if q.Keys != nil {
		found, _, report, err := q.Keys.find(ctx, &storage.View{Snapshot: snap}, q.Partition, read)
		if err != nil {
			return nil, err
		}
		out.Keys = report
		out.intersect(func(i int) *roaring.Bitmap { return found[out.Segments[i].Segment.ID] })
	}
	return out, nil
}

// intersect leaves the rows of segment i that are in with(i), which is not written to; nil: none.
func (s *Selection) intersect(with func(i int) *roaring.Bitmap) {
	kept := s.Segments[:0:0]
	s.Rows = 0
	for i, r := range s.Segments {
		rows := with(i)
		if rows == nil {
			continue
		}
		if r.Rows != nil {
			rows = roaring.And(r.Rows, rows)
		}
		if rows.IsEmpty() {
			continue
		}
		kept = append(kept, reader.SegmentRows{Segment: r.Segment, Rows: rows})
		s.Rows += rows.GetCardinality()
	}
	s.Segments = kept
}

// rowsOf returns the rows of a segment; where they are all it makes the set. Borrowed.
func rowsOf(r reader.SegmentRows) (*roaring.Bitmap, error) {
	if r.Rows != nil {
		return r.Rows, nil
	}
	if r.Segment.Rows > math.MaxUint32 { // beyond, roaring panics
		return nil, fmt.Errorf("segment %s: %d rows are too many to select from", r.Segment.ID, r.Segment.Rows)
	}
	all := roaring.New()
	all.AddRange(0, r.Segment.Rows)
	return all, nil
}
