package compaction

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// A Search is the result of the search for erased keys. Its JSON keys are stable.
type Search struct {
	Feature string `json:"feature"`
	Keys    int    `json:"keys"`
	// Segments and Slots count the segments (layers of overlays included) and stored slots of the feature that were
	// decoded and compared: those of the newest snapshot, and of snapshots that branches keep.
	Segments uint64 `json:"segments_decoded"`
	Slots    uint64 `json:"slots_decoded"`
	// Definitions is how many definitions of sample lists were searched.
	Definitions uint64 `json:"definitions_read"`
	// Objects and Bytes count what was searched for the bytes of ByteKeys keys: every byte of every object of the
	// store. Integers are searched for as eight bytes, in either byte order, and as decimal text; strings as they are.
	// Strings of less than 8 bytes and integers of less than 2^40 are not, because other data has the same bytes by
	// chance.
	Objects  uint64 `json:"objects_read"`
	Bytes    uint64 `json:"bytes_read"`
	ByteKeys int    `json:"keys_searched_as_bytes"`
	// Found lists where keys were found, at most maxFound; empty: none was found.
	Found []string `json:"found"`
	// More is how many finds Found does not list.
	More uint64 `json:"found_more"`

	inNewest bool // a find is in the newest snapshot, or a run that it names
}

// maxFound limits Search.Found.
const maxFound = 100

// Proves says what is certain when nothing was found.
func (s *Search) Proves() string {
	values := fmt.Sprintf("no stored value of feature %s in any segment that the table's newest snapshot or a branch "+
		"names is one of the keys", s.Feature)
	if s.ByteKeys > 0 {
		values += fmt.Sprintf("; no object of the store has the bytes, uncompressed, of one of the %d of %d keys that "+
			"are long enough to be searched for", s.ByteKeys, s.Keys)
	}
	return values
}

// Unproved says what is not.
func (s *Search) Unproved() string {
	text := "that the keys are in no other feature and in no other table: their values are not decoded"
	if short := s.Keys - s.ByteKeys; short > 0 {
		text += fmt.Sprintf("; %d of %d keys are short, and not searched for as bytes", short, s.Keys)
	}
	return text
}

// found adds a find.
func (s *Search) found(format string, args ...any) {
	if len(s.Found) == maxFound {
		s.More++
		return
	}
	s.Found = append(s.Found, fmt.Sprintf(format, args...))
}

// merge adds the finds of a part of the search.
func (s *Search) merge(part *Search) {
	for _, where := range part.Found {
		s.found("%s", where)
	}
	s.More += part.More
	s.inNewest = s.inNewest || part.inNewest
}

// ErrFound is returned by Erase when an erased key was found after erasing; by a dry run, if that would be found.
var ErrFound = errors.New("a key is left")

// foresee is the part of search that a dry run can do: it finds the definitions of lists that the erasure leaves.
func (e *eraser) foresee(ctx context.Context) error {
	if e.keys == nil || e.keys.Len() == 0 {
		return nil
	}
	s := &Search{}
	if err := e.searchDefinitions(ctx, s, e.snap); err != nil {
		return err
	}
	return s.err("the rows would be erased")
}

// err returns ErrFound with the first finds, after what has become of the rows; nil: nothing was found.
func (s *Search) err(rows string) error {
	if len(s.Found) == 0 {
		return nil
	}
	return fmt.Errorf("%s, but %w: %s", rows, ErrFound, strings.Join(s.Found[:min(len(s.Found), 3)], "; "))
}

// search searches for the keys in the whole store.
func (e *eraser) search(ctx context.Context) error {
	if e.keys == nil || e.keys.Len() == 0 {
		return nil
	}
	s := &Search{Feature: e.keys.feature.Name, Keys: e.keys.Len(), Found: []string{}}
	e.out.Search = s
	newest, err := e.table.Latest(ctx)
	if err != nil {
		return err
	}
	if err := e.searchValues(ctx, s, newest); err != nil {
		return err
	}
	if err := e.searchBytes(ctx, s, newest); err != nil {
		return err
	}
	return s.err("the rows are erased")
}

// searchValues decodes the feature in all segments that the newest snapshot or a branch names.
func (e *eraser) searchValues(ctx context.Context, s *Search, newest *storage.Snapshot) error {
	snaps := []*storage.Snapshot{newest}
	branches, err := newest.Branches(ctx)
	if err != nil {
		return err
	}
	for _, b := range branches {
		for _, n := range b.Pins() {
			if slices.ContainsFunc(snaps, func(s *storage.Snapshot) bool { return s.Info().Number == n }) {
				continue
			}
			snap, err := e.table.At(ctx, n)
			if err != nil {
				return err
			}
			snaps = append(snaps, snap)
		}
	}
	done := map[string]bool{}
	for _, snap := range snaps {
		if err := e.searchDefinitions(ctx, s, snap); err != nil {
			return err
		}
		segments, err := snap.Segments(ctx, nil)
		if err != nil {
			return err
		}
		overlays, err := snap.Overlays(ctx)
		if err != nil {
			return err
		}
		for _, o := range overlays {
			err := snap.EachOverlaySegment(ctx, o, func(l catalog.OverlaySegment) error {
				segments = append(segments, l.Data)
				return nil
			})
			if err != nil {
				return err
			}
		}
		segments = slices.DeleteFunc(segments, func(d catalog.SegmentDescriptor) bool {
			before := done[d.ID]
			done[d.ID] = true
			return before
		})
		parts := make([]Search, len(segments))
		if err := e.eachColumn(ctx, segments, func(_ context.Context, i int, c *column) error {
			return e.searchColumn(&parts[i], segments[i], c)
		}); err != nil {
			return err
		}
		for i := range parts {
			s.Segments += parts[i].Segments
			s.Slots += parts[i].Slots
			s.merge(&parts[i])
		}
	}
	return nil
}

// named reports whether the definition of a sample list has one of the keys: a long one whatever else it says, because
// features are renamed, a short one beside the feature's name.
func (e *eraser) named(definition string) bool {
	// Expressions double the quotes in texts.
	return e.byteKeys().named(definition) || e.byteKeys().named(strings.ReplaceAll(definition, "''", "'")) ||
		e.keys.named(definition)
}

// byteKeys returns the keys that are searched for as bytes. They do not change once the rows have been found.
func (e *eraser) byteKeys() *byteKeys {
	if e.bytes == nil {
		e.bytes = newByteKeys(e.keys)
	}
	return e.bytes
}

// searchDefinitions searches the definitions of sample lists.
func (e *eraser) searchDefinitions(ctx context.Context, s *Search, snap *storage.Snapshot) error {
	lists, err := snap.SampleLists(ctx)
	if err != nil {
		return err
	}
	for _, l := range lists {
		s.Definitions++
		if e.named(l.Definition) {
			s.found("sample list %s of snapshot %d: its definition names a key: drop the list, "+
				"or create it with another definition", l.Name, snap.Info().Number)
		}
	}
	return nil
}

func (e *eraser) searchColumn(s *Search, d catalog.SegmentDescriptor, c *column) error {
	if c.sources[0].entry == nil {
		return nil // a layer of other features, or a segment written before the table had the feature
	}
	s.Segments++
	return c.eachStripe(func(first int, stripe *vector.Column) error {
		s.Slots += uint64(stripe.Slots)
		for slot := range stripe.Slots {
			if present(stripe, slot) && e.keys.has(stripe, slot) {
				s.found("segment %s, the stripe from row %d on: a value of feature %s", d.ID, first,
					e.keys.feature.Name)
				return nil
			}
		}
		return nil
	})
}

const (
	searchBlock   = 1 << 20 // bytes of an object that are read at once
	objectsAtOnce = 8
)

// searchBytes searches every object of the store for the bytes of keys.
func (e *eraser) searchBytes(ctx context.Context, s *Search, newest *storage.Snapshot) error {
	keys := e.byteKeys()
	s.ByteKeys = keys.count
	if keys.count == 0 {
		return nil
	}
	named := map[string]bool{names.SnapshotName(e.table.Name(), newest.Info().Number): true}
	listing, schema := &newest.Manifest.Listing, &newest.Manifest.Schema
	for _, r := range listing.Runs {
		named[listing.Kind.ObjectName(r.ID)] = true
	}
	for _, r := range schema.Runs {
		named[schema.Kind.ObjectName(r.ID)] = true
	}
	before := len(s.Found) // of values and definitions, which say what to do
	var mu sync.Mutex      // of s
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(objectsAtOnce)
	var listed error
	for info, err := range e.store.Blobs().List(ctx, "", "") {
		if err != nil {
			listed = err
			break
		}
		g.Go(func() error {
			part, err := e.searchObject(ctx, keys, info, newest.Manifest.Table)
			part.inNewest = len(part.Found) > 0 && named[info.Name]
			mu.Lock()
			defer mu.Unlock()
			s.Objects++
			s.Bytes += part.Bytes
			s.merge(&part)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	slices.Sort(s.Found[before:])
	return listed
}

// searchObject searches one object, up to its first key. id is the table's.
func (e *eraser) searchObject(ctx context.Context, keys *byteKeys, info object.Info,
	id names.TableID) (part Search, err error) {
	buf := make([]byte, min(info.Size, int64(searchBlock+keys.most)))
	for at := int64(0); at < info.Size; at += searchBlock {
		// A block is read with the next keys.most bytes, because a key may start in it and end after it.
		p := buf[:min(int64(len(buf)), info.Size-at)]
		if err := e.store.Blobs().ReadAt(ctx, info.Name, p, at); errors.Is(err, object.ErrNotFound) ||
			errors.Is(err, io.ErrUnexpectedEOF) {
			break // deleted meanwhile, such as a lease or a usage record, or truncated, as gc does to a snapshot
		} else if err != nil {
			return part, err
		}
		part.Bytes += uint64(min(searchBlock, len(p)))
		if i := keys.find(p); i >= 0 {
			part.found("object %s, byte %d: the bytes of a key%s", info.Name, at+int64(i), e.removes(info.Name, id))
			break
		}
	}
	return part, nil
}

// removes says what may remove an object of metadata that has a key. id is the table's.
func (e *eraser) removes(name string, id names.TableID) string {
	if of, ok := names.ParseDataName(name); ok && of.Table() != id {
		return "; it is of another table: erase from that one, too"
	}
	if _, ok := names.ParseSnapshot(e.table.Name(), name); !ok && !names.IsRun(name) {
		return ""
	}
	return "; if it says what was removed since, dsi snapshots expire and then dsi gc remove it, after its grace period"
}
