package compaction

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
)

// A Search says where erased keys were looked for, and found. Its JSON keys are stable.
type Search struct {
	Feature string `json:"feature"`
	Keys    int    `json:"keys"`
	// Values: every stored slot of the feature in so many segments, and layers, was decoded and compared: those of the
	// newest snapshot, and of snapshots that branches keep.
	Segments uint64 `json:"segments_decoded"`
	Slots    uint64 `json:"slots_decoded"`
	// Definitions is how many sample lists' definitions were looked through.
	Definitions uint64 `json:"definitions_read"`
	// Bytes: every byte of every object was compared with the keys that have eight bytes at least: integers as eight
	// bytes, in either order, and as decimal text; strings as they are. Shorter strings, and integers below 2^40, which
	// chance would find, are looked for as values only.
	Objects  uint64 `json:"objects_read"`
	Bytes    uint64 `json:"bytes_read"`
	ByteKeys int    `json:"keys_searched_as_bytes"`
	// Found says where a key was found; none: the search succeeded.
	Found []string `json:"found"`
	// More is how many more were found than Found lists.
	More uint64 `json:"found_more"`
}

// maxFound bounds what a Search lists.
const maxFound = 100

// Proves says what it means that nothing was found.
func (s *Search) Proves() string {
	return fmt.Sprintf("no stored value of feature %s in any segment that a snapshot names is one of the keys, "+
		"and no object has the bytes of one of the %d keys of eight bytes or more; "+
		"compressed and packed bytes are proved by their values alone, and values of other features are not looked at",
		s.Feature, s.ByteKeys)
}

func (s *Search) found(format string, args ...any) {
	if len(s.Found) == maxFound {
		s.More++
		return
	}
	s.Found = append(s.Found, fmt.Sprintf(format, args...))
}

// merge adds what another part found of the search.
func (s *Search) merge(part *Search) {
	for _, where := range part.Found {
		s.found("%s", where)
	}
	s.More += part.More
}

// ErrFound is matched when a search found an erased key.
var ErrFound = errors.New("an erased key was found")

// search looks for the keys in everything that the store has.
func (e *eraser) search(ctx context.Context) error {
	if e.keys == nil || e.keys.Len() == 0 {
		return nil
	}
	s := &Search{Feature: e.keys.feature.Name, Keys: e.keys.Len(), Found: []string{}}
	e.out.Search = s
	if err := e.searchValues(ctx, s); err != nil {
		return err
	}
	if err := e.searchBytes(ctx, s); err != nil {
		return err
	}
	if len(s.Found) > 0 {
		return fmt.Errorf("%w: %s", ErrFound, strings.Join(s.Found[:min(len(s.Found), 3)], "; "))
	}
	return nil
}

// searchValues decodes the feature wherever it can be read.
func (e *eraser) searchValues(ctx context.Context, s *Search) error {
	newest, err := e.table.Latest(ctx)
	if err != nil {
		return err
	}
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

// searchDefinitions looks at what sample lists say that they were made from.
func (e *eraser) searchDefinitions(ctx context.Context, s *Search, snap *storage.Snapshot) error {
	lists, err := snap.SampleLists(ctx)
	if err != nil {
		return err
	}
	for _, l := range lists {
		s.Definitions++
		if e.keys.named(l.Definition) {
			s.found("sample list %s of snapshot %d: its definition names a key: drop the list, "+
				"or make it anew under another definition", l.Name, snap.Info().Number)
		}
	}
	return nil
}

func (e *eraser) searchColumn(s *Search, d catalog.SegmentDescriptor, c *column) error {
	if c.sources[0].entry == nil {
		return nil // a layer of other features, or a segment before this one
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

// leastByteInt is the least integer that is looked for as bytes.
const leastByteInt = 1 << 40

// A byteKeys finds keys in bytes: by their first eight, and then whole.
type byteKeys struct {
	by8    map[uint64][]string
	filter [1 << 16 / 64]uint64 // of the low 16 bits of by8's
	count  int
	most   int // the longest, in bytes
}

func newByteKeys(k *Keys) *byteKeys {
	b := &byteKeys{by8: map[uint64][]string{}}
	add := func(key string) {
		w := binary.LittleEndian.Uint64([]byte(key[:8]))
		b.by8[w] = append(b.by8[w], key)
		b.filter[w&0xffff>>6] |= 1 << (w & 63)
		b.most = max(b.most, len(key))
	}
	for t := range k.texts {
		if len(t) >= 8 {
			add(t)
			b.count++
		}
	}
	for v := range k.numbers {
		if v < leastByteInt && v > -leastByteInt {
			continue
		}
		b.count++
		add(k.text(v))
		add(string(binary.LittleEndian.AppendUint64(nil, uint64(v))))
		add(string(binary.BigEndian.AppendUint64(nil, uint64(v))))
	}
	return b
}

// find returns where in p a key begins, -1: nowhere.
func (b *byteKeys) find(p []byte) int {
	if len(p) < 8 {
		return -1
	}
	w := binary.LittleEndian.Uint64(p) // bytes [at, at+8)
	for at := 0; ; at++ {
		if b.filter[w&0xffff>>6]>>(w&63)&1 != 0 {
			for _, key := range b.by8[w] {
				if len(p)-at >= len(key) && string(p[at:at+len(key)]) == key {
					return at
				}
			}
		}
		if at+8 == len(p) {
			return -1
		}
		w = w>>8 | uint64(p[at+8])<<56
	}
}

const (
	searchBlock   = 1 << 20 // how much of an object is read at once
	objectsAtOnce = 8
)

// searchBytes reads every object of the store.
func (e *eraser) searchBytes(ctx context.Context, s *Search) error {
	keys := newByteKeys(e.keys)
	s.ByteKeys = keys.count
	if keys.count == 0 {
		return nil
	}
	var mu sync.Mutex // of s
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(objectsAtOnce)
	var listed error
	for info, err := range e.store.Blobs().List(ctx, "", "") {
		if err != nil {
			listed = err
			break
		}
		g.Go(func() error {
			part, err := e.searchObject(ctx, keys, info)
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
	slices.Sort(s.Found)
	return listed
}

// searchObject reads an object.
func (e *eraser) searchObject(ctx context.Context, keys *byteKeys, info object.Info) (part Search, err error) {
	buf := make([]byte, min(info.Size, int64(searchBlock+keys.most)))
	for at := int64(0); at < info.Size; at += searchBlock {
		// With what a key that begins in the block may go on into.
		p := buf[:min(int64(len(buf)), info.Size-at)]
		if err := e.store.Blobs().ReadAt(ctx, info.Name, p, at); errors.Is(err, object.ErrNotFound) {
			break // it is gone, as leases and usage records are that others replace
		} else if err != nil {
			return part, err
		}
		part.Bytes += uint64(min(searchBlock, len(p)))
		if i := keys.find(p); i >= 0 {
			part.found("object %s, byte %d: the bytes of a key", info.Name, at+int64(i))
			break
		}
	}
	return part, nil
}
