package storage

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage/wire"
)

// A SampleList is a named set of rows of a table: for each segment a set, empty where it has none, as of those ingested since.
type SampleList struct {
	Name string
	// Definition says what it was made from, for people: "click = 1", "keys of ids.csv", "a + b". At most 4,096 bytes.
	Definition string
	// Added is the snapshot that defined it, anew where it was replaced. Commit sets it.
	Added uint64
}

// ListRows are the rows of a segment that are in a sample list.
type ListRows struct {
	List    string
	Segment string    // id
	Rows    RowBitmap // of Store.PutRowBitmap; empty: none
}

// Validate returns an error naming the first field that is wrong.
func (l SampleList) Validate() error {
	if err := checkName("sample list", l.Name); err != nil {
		return err
	}
	if len(l.Definition) > maxName {
		return fmt.Errorf("sample list %s: definition of %d bytes: want at most %d", l.Name, len(l.Definition), maxName)
	}
	return nil
}

// The value of a sample list's entry, whose key has the name:
//
//	added | definition
//
// and that of its rows of a segment, like deleted rows: since | the set.
func appendList(dst []byte, l SampleList) []byte {
	return wire.AppendString(binary.AppendUvarint(dst, l.Added), l.Definition)
}

func decodeList(name string, b []byte) (SampleList, string) {
	d := wire.Decoder{Rest: b}
	l := SampleList{Name: name, Added: d.Uvarint(), Definition: d.String()}
	d.End()
	if d.Reason != "" {
		return SampleList{}, fmt.Sprintf("sample list %.150q: %s", name, d.Reason)
	}
	if err := l.Validate(); err != nil {
		return SampleList{}, err.Error()
	}
	return l, ""
}

// SampleLists returns the sample lists of the snapshot, in name order.
func (s *Snapshot) SampleLists(ctx context.Context) ([]SampleList, error) {
	if s.m.lists == 0 {
		return nil, nil
	}
	var out []SampleList
	err := s.space(ctx, listSpace, func(key, value []byte) string {
		l, reason := decodeList(string(key[1:]), value)
		out = append(out, l)
		return reason
	})
	return out, err
}

// SampleList returns the sample list of a name; ErrNotFound names the nearest.
func (s *Snapshot) SampleList(ctx context.Context, name string) (SampleList, error) {
	l, err := s.findList(ctx, name)
	if err != nil || l != nil {
		return deref(l), err
	}
	all, err := s.SampleLists(ctx)
	if err != nil {
		return SampleList{}, err
	}
	var names []string
	for _, l := range all {
		names = append(names, l.Name)
	}
	return SampleList{}, fmt.Errorf("table %s: sample list %.150q: %w%s", s.t.name, name, ErrNotFound, suggest.Hint(name, names))
}

// findList returns nil where there is no such list.
func (s *Snapshot) findList(ctx context.Context, name string) (*SampleList, error) {
	if s.m.lists == 0 {
		return nil, nil
	}
	values, err := s.t.s.get(ctx, s.m.listing, listKey(name))
	if err != nil || values[0] == nil {
		return nil, err
	}
	l, reason := decodeList(name, values[0])
	if reason != "" {
		return nil, wire.Corrupt(s.treeName(s.m.listing), reason)
	}
	return &l, nil
}

// ListedRows returns the rows of segments of the snapshot that are in a sample list, in order; deleted ones may be among them.
// A list that does not exist has none: SampleList tells. Its cost follows from what is asked for.
func (s *Snapshot) ListedRows(ctx context.Context, list string, segments ...SegmentDescriptor) ([]RowBitmap, error) {
	if s.m.lists == 0 {
		return make([]RowBitmap, len(segments)), nil
	}
	return s.rowBitmaps(ctx, listRowsPrefix(list), "rows of sample list "+list, segments)
}
