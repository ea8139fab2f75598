package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/sst"
	"github.com/dsistore/dsistore/storage/wire"
)

// fewKeys says when a key table is asked: when there are at most one key for so many rows. Of more keys each stripe
// is likely to have one, and to decode the feature takes no more than the table would.
const fewKeys = 8

// Chunks of a filter, and buckets, that lie no further apart are read as one; remoteKeyGap where requests take long.
const (
	keyGap       = 16 << 10
	remoteKeyGap = 256 << 10
	// keyIndexShare is which part of a key table holds the index of its blocks, which is read with the tail where
	// requests take long.
	keyIndexShare = 32
	// keysHead is how much of the front is read with the tail: the block with the facts, which holds the first chunk of
	// a filter, too.
	keysHead = 4 << 10
)

// KeyRows returns, for each segment, rows among which are all that have one of the keys of a feature, deleted ones too:
// whole stripes. nil: every row. The keys are given by their hashes (HashInt, HashText), as SortHashes returns them. It
// reads the segments' key tables, several at a time: first the filters and, where a filter lets hashes through,
// their entries. It is every row of a segment whose table is damaged or lost: the rows are there all the same, and
// verify reports the table.
func (s *Store) KeyRows(ctx context.Context, f catalog.FeatureID, hashes []uint64,
	segments []catalog.SegmentDescriptor) ([]*roaring.Bitmap, error) {
	out := make([]*roaring.Bitmap, len(segments))
	err := object.Parallel(ctx, object.RequestsAtOnce, len(segments), func(ctx context.Context, i int) error {
		d := segments[i]
		if !asks(d, len(hashes)) {
			return nil
		}
		k, err := s.openKeys(ctx, d)
		if err == nil {
			out[i], err = k.rows(ctx, f, hashes)
		}
		if errors.Is(err, format.ErrCorrupt) {
			out[i], err = nil, nil
		}
		return err
	})
	return out, err
}

// ReadsKeyTables reports whether KeyRows reads a key table for the hashes: else it returns every row of all
// segments.
func ReadsKeyTables(segments []catalog.SegmentDescriptor, hashes []uint64) bool {
	return slices.ContainsFunc(segments, func(d catalog.SegmentDescriptor) bool { return asks(d, len(hashes)) })
}

// SortHashes returns the bits of hashes that key tables use, ascending, each once. The slice is new.
func SortHashes(hashes []uint64) []uint64 {
	hashes = slices.Clone(hashes)
	for i := range hashes {
		hashes[i] &= hashMask
	}
	slices.Sort(hashes)
	return slices.Compact(hashes)
}

// asks reports whether a segment's key table is asked for so many.
func asks(d catalog.SegmentDescriptor, keys int) bool {
	return d.KeysSize > 0 && d.Rows <= bitmap.MaxRows && uint64(keys) <= d.Rows/fewKeys
}

// A keyTable is an open key table.
type keyTable struct {
	name        string
	table       *sst.Reader
	segmentRows uint64
	stripes     []uint32 // rows of each
	features    []keyFacts
}

// openKeys returns the key table of a segment, which has one, and keeps it open.
func (s *Store) openKeys(ctx context.Context, d catalog.SegmentDescriptor) (*keyTable, error) {
	segment, err := names.ParseID(d.ID)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	k, ok := s.keys.Get(segment)
	s.mu.Unlock()
	if ok && d.Rows == k.segmentRows {
		return k, nil
	}
	if k, err = s.readKeys(ctx, segment, d); err != nil {
		return nil, err
	}
	size := int64(d.KeysSize)
	if d.KeysSize > lsm.RemoteRunBytes {
		size /= 32 // the index of its blocks
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys.Remove(segment)
	s.keys.Put(segment, k, size)
	return k, nil
}

// readKeys opens a key table.
func (s *Store) readKeys(ctx context.Context, segment names.ID, d catalog.SegmentDescriptor) (_ *keyTable, err error) {
	k := &keyTable{name: segment.KeysName(), segmentRows: d.Rows}
	fetch := sst.Fetch{Head: keysHead, Gap: keyGap}
	if object.HighLatency(s.Blobs) {
		fetch.Whole, fetch.Gap, fetch.Tail = lsm.RemoteRunBytes, remoteKeyGap, int(min(d.KeysSize/keyIndexShare,
			lsm.RemoteRunBytes))
	}
	if k.table, err = lsm.OpenTable(ctx, s.Blobs, k.name, d.KeysSize, fetch); err != nil {
		return nil, err
	}
	v, err := k.table.Get(ctx, []byte{keyFactsRecord})
	if err != nil {
		return nil, err
	}
	if v[0] == nil {
		return nil, wire.Corrupt(k.name, "no facts")
	}
	r := wire.Decoder{Rest: v[0]}
	if of := r.Take(uint64(len(segment))); r.Reason == "" && !bytes.Equal(of, segment[:]) {
		r.Fail("of another segment")
	}
	k.stripes = takeFacts(&r, d.Rows)
	k.features = decodeKeyFacts(&r)
	r.End()
	if r.Reason == "" && len(k.stripes) > maxKeyStripes {
		r.Reason = "more stripes than a table of keys has"
	}
	if r.Reason != "" {
		return nil, wire.Corrupt(k.name, r.Reason)
	}
	return k, nil
}

// of returns the facts of a feature, nil where the table does not have it.
func (k *keyTable) of(f catalog.FeatureID) *keyFacts {
	for i := range k.features {
		if k.features[i].feature == f {
			return &k.features[i]
		}
	}
	return nil
}

// rows returns the rows of the stripes in which the hashes may be, which ascend; nil: all, as it is not known, or not
// worth to know.
func (k *keyTable) rows(ctx context.Context, feature catalog.FeatureID, hashes []uint64) (*roaring.Bitmap, error) {
	f := k.of(feature)
	if f == nil {
		return nil, nil
	}
	out := roaring.New()
	if f.blocks == 0 {
		return out, nil
	}
	passed, err := k.filter(ctx, f, hashes)
	if err != nil {
		return nil, err
	}
	// So many, besides those that pass by chance, that likely every stripe has some: the entries would say no more.
	if len(passed) > len(hashes)/64+3*len(k.stripes) {
		return nil, nil
	}
	hit := make([]bool, len(k.stripes))
	if err := k.look(ctx, f, passed, hit); err != nil {
		return nil, err
	}
	first := uint64(0)
	for i, n := range k.stripes {
		if hit[i] {
			out.AddRange(first, first+uint64(n))
		}
		first += uint64(n)
	}
	return out, nil
}

// filter returns the hashes that the filter lets through.
func (k *keyTable) filter(ctx context.Context, f *keyFacts, hashes []uint64) (passed []uint64, err error) {
	chunkOf := func(hash uint64) uint32 { return uint32(filterPlace(hash, f.blocks) * filterBlock / filterChunkBytes) }
	err = k.each(ctx, f, filterChunk, hashes, chunkOf, func(chunk uint32, value []byte, hashes []uint64) string {
		from := uint64(chunk) * filterChunkBytes
		if uint64(len(value)) != min(filterChunkBytes, f.blocks*filterBlock-from) {
			return fmt.Sprintf("chunk %d of a filter is of %d bytes", chunk, len(value))
		}
		for _, h := range hashes {
			at := filterPlace(h, f.blocks)*filterBlock - from
			if passes(value[at:at+filterBlock], h) {
				passed = append(passed, h)
			}
		}
		return ""
	})
	return passed, err
}

// look marks the stripes whose entries have one of the hashes.
func (k *keyTable) look(ctx context.Context, f *keyFacts, hashes []uint64, hit []bool) error {
	bits := f.bucketBits()
	bucketOf := func(hash uint64) uint32 { return uint32(hash >> (64 - bits)) }
	return k.each(ctx, f, keyBucket, hashes, bucketOf, func(_ uint32, value []byte, hashes []uint64) string {
		b, reason := k.bucket(value)
		if reason != "" {
			return reason
		}
		for _, h := range hashes {
			want := fingerprint(h, bits)
			i := sort.Search(b.n, func(i int) bool { return b.fingerprint(i) >= want })
			for ; i < b.n && b.fingerprint(i) == want; i++ {
				stripe := b.stripe(i)
				if stripe >= len(hit) {
					return "entry names a stripe that the segment does not have"
				}
				hit[stripe] = true
			}
		}
		return ""
	})
}

// each calls visit with each of the parts of a feature that hashes are in, and those hashes. partOf ascends with the
// hash. A bucket that is not there is empty.
func (k *keyTable) each(ctx context.Context, f *keyFacts, kind byte, hashes []uint64, partOf func(uint64) uint32,
	visit func(part uint32, value []byte, hashes []uint64) (reason string)) error {
	var keys [][]byte
	var ends []int // in hashes
	for i, h := range hashes {
		if part := partOf(h); i == 0 || part != partOf(hashes[i-1]) {
			keys = append(keys, keyPart(nil, f.feature, kind, part))
			ends = append(ends, i)
		}
		ends[len(ends)-1] = i + 1
	}
	values, err := k.table.Get(ctx, keys...)
	if err != nil {
		return err
	}
	from := 0
	for i, value := range values {
		if value != nil || kind == filterChunk {
			if reason := visit(binary.BigEndian.Uint32(keys[i][10:]), value, hashes[from:ends[i]]); reason != "" {
				return wire.Corrupt(k.name, reason)
			}
		}
		from = ends[i]
	}
	return nil
}

// A bucket is entries of a key feature, ordered by fingerprint.
type bucket struct {
	n, width int
	b        []byte
}

// bucket returns the bucket that a value is.
func (k *keyTable) bucket(value []byte) (bucket, string) {
	width := stripeWidth(len(k.stripes))
	n := len(value) / (2 + width)
	if n == 0 || n*(2+width) != len(value) {
		return bucket{}, fmt.Sprintf("bucket of %d bytes", len(value))
	}
	return bucket{n, width, value}, ""
}

func (b *bucket) fingerprint(i int) uint16 { return binary.LittleEndian.Uint16(b.b[2*i:]) }

func (b *bucket) stripe(i int) int {
	if b.width == 1 {
		return int(b.b[2*b.n+i])
	}
	return int(binary.LittleEndian.Uint16(b.b[2*b.n+2*i:]))
}

func (b *bucket) fingerprints() []uint16 {
	out := make([]uint16, b.n)
	for i := range out {
		out[i] = b.fingerprint(i)
	}
	return out
}
