package segment

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/sst"
	"github.com/dsistore/dsistore/storage/wire"
)

// A segment's key table, keys.sst, says in which stripes a session, request or user may be. It has hashes, no keys:
// a reader that finds a stripe there decodes the feature's stripe and compares. The entries of the sorted table:
//
//	00                                       facts: segment id, rows and stripes (appendFacts), then the key features
//	                                         (appendKeyFacts)
//	01 | feature id (8 BE) | 01 | c (4 BE)   chunk c of the feature's Bloom filter: 64 blocks of 32 bytes, the last
//	                                         has what is left
//	01 | feature id (8 BE) | 02 | b (4 BE)   bucket b of its entries: n fingerprints (2 LE each), ascending, then
//	                                         their n stripes (1 or 2 LE each)
//
// Of a key's hash (xxhash64, seed 0, of the integer's 8 bytes LE or of the string) the low 16 bits are not used:
//
//	hash   | bucket (0 to 15 bits) | fingerprint (16 bits) | ...        Key is in bucket: hash >> (64 - bits)
//	       | top 32 bits: block of the filter |
//	                   | bits 16 to 47: a bit in each of the block's 8 words |
//
// The filter is Parquet's split block Bloom filter, with other bits of the hash.
const (
	keyFactsRecord = 0x00
	keyRecord      = 0x01
	filterChunk    = 0x01
	keyBucket      = 0x02

	filterBlock      = 32 // bytes
	filterChunkBytes = 64 * filterBlock
	filterBits       = 10 // for each distinct hash: about 1 of 100 others passes
	bucketEntries    = 512
	fingerprintBits  = 16
	// hashMask are the bits of a hash that count; an entry in memory has its stripe in the others.
	hashMask      = math.MaxUint64 &^ 0xffff
	maxKeyStripes = 1 << 16
	// maxKeyEntries bounds the entries of a feature, and so the memory that a writer holds for them: 128 MiB. A feature
	// with more has none.
	maxKeyEntries = 1 << 24
	// defaultKeyRows is how many rows a segment has at least to get a table: a smaller one's keys are read as quickly.
	defaultKeyRows = 4096
)

// HashInt and HashText hash a key for Store.KeyRows.
func HashInt(v int64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(v))
	return xxhash.Sum64(b[:])
}

// HashText is HashInt for strings and bytes.
func HashText(v []byte) uint64 { return xxhash.Sum64(v) }

// isLookedUp reports whether a segment's key table has the feature: a session, request or user key that is an
// integer, a string or bytes.
func isLookedUp(f catalog.Feature) bool {
	return (f.Role == catalog.RoleSessionKey || f.Role == catalog.RoleRequestKey || f.Role == catalog.RoleUserKey) &&
		IsLookupType(f.Type)
}

// IsLookupType reports whether rows can be looked up by values of the type: integers, strings and bytes.
func IsLookupType(t vector.Type) bool {
	return t.Kind == vector.String || t.Kind == vector.Bytes || t.Kind == vector.Dense && t.Elem.IsInteger()
}

// keyHashes are the hashes of a key feature of a segment that is written, with the stripe in the low 16 bits. Values
// that are equal and next to each other are one.
type keyHashes struct {
	feature catalog.FeatureID
	stripes int
	entries []uint64
	full    bool // there were too many
}

// add adds the values of a stripe, the next one.
func (k *keyHashes) add(c *vector.Column) {
	stripe := uint64(k.stripes)
	k.stripes++
	if k.full = k.full || len(k.entries)+c.Slots > maxKeyEntries || stripe >= maxKeyStripes; k.full {
		k.entries = nil
		return
	}
	from := len(k.entries)
	k.entries = slices.Grow(k.entries, c.Slots)
	for slot := range c.Slots {
		if c.Present != nil && !c.Present.Get(slot) {
			continue
		}
		lo, hi := c.SlotRange(slot)
		var h uint64
		if c.Type.IsList() {
			h = HashText(c.Data[lo:hi])
		} else {
			h = HashInt(c.Ints[lo])
		}
		if e := h&hashMask | stripe; len(k.entries) == from || e != k.entries[len(k.entries)-1] {
			k.entries = append(k.entries, e)
		}
	}
}

// sort orders the entries, and makes them distinct. Hashes are spread evenly: they are dealt to places of about 16 by
// their first bits, and each place is sorted.
func (k *keyHashes) sort() {
	shift := min(64, 64-bits.Len(uint(len(k.entries)/16)))
	ends := make([]uint32, 1<<(64-shift))
	for _, e := range k.entries {
		ends[e>>shift]++
	}
	at := uint32(0)
	for i, n := range ends {
		ends[i] = at
		at += n
	}
	sorted := make([]uint64, len(k.entries))
	for _, e := range k.entries {
		p := &ends[e>>shift]
		sorted[*p] = e
		*p++
	}
	from := uint32(0)
	for _, end := range ends {
		slices.Sort(sorted[from:end])
		from = end
	}
	k.entries = slices.Compact(sorted)
}

// keyFacts say how much a table has of a feature.
type keyFacts struct {
	feature catalog.FeatureID
	entries uint64 // of distinct hash and stripe
	blocks  uint64 // of the filter; 0: the feature is null in every row
}

// bucketBits returns how many bits of a hash tell the bucket.
func (f keyFacts) bucketBits() int {
	bits := 0
	for f.entries>>bits > bucketEntries {
		bits++
	}
	return bits
}

// appendKeyFacts appends: number of features | (feature id (8 BE) | entries | blocks)..., in id order.
func appendKeyFacts(dst []byte, facts []keyFacts) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(facts)))
	for _, f := range facts {
		dst = binary.BigEndian.AppendUint64(dst, uint64(f.feature))
		dst = binary.AppendUvarint(dst, f.entries)
		dst = binary.AppendUvarint(dst, f.blocks)
	}
	return dst
}

// leastKeyFacts is how many bytes the facts of a feature take at least.
const leastKeyFacts = 10

func decodeKeyFacts(d *wire.Decoder) (out []keyFacts) {
	for range d.Max(uint64(len(d.Rest)/leastKeyFacts), "key features") {
		var f keyFacts
		if b := d.Take(8); b != nil {
			f.feature = catalog.FeatureID(binary.BigEndian.Uint64(b))
		}
		f.entries = d.Max(maxKeyEntries, "entries of a key")
		f.blocks = d.Max(maxKeyEntries*filterBits/filterBlock/8+1, "filter of a key")
		if (f.entries == 0) != (f.blocks == 0) || len(out) > 0 && out[len(out)-1].feature >= f.feature {
			d.Fail("facts of key features are malformed")
		}
		if d.Reason != "" {
			return nil
		}
		out = append(out, f)
	}
	return out
}

// stripeWidth is how many bytes say a stripe.
func stripeWidth(stripes int) int {
	if stripes <= 1<<8 {
		return 1
	}
	return 2
}

// keyPart makes the key of chunk or bucket n of a feature.
func keyPart(dst []byte, f catalog.FeatureID, kind byte, n uint32) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, keyRecord), uint64(f))
	return binary.BigEndian.AppendUint32(append(dst, kind), n)
}

// filterSalts are those of Parquet's filter: each takes one bit of a word from the same 32 bits of a hash.
var filterSalts = [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b,
	0x9efc4947, 0x5c6bfb31}

// filterPlace returns the block that a hash is in, of so many.
func filterPlace(hash, blocks uint64) uint64 { return (hash >> 32) * blocks >> 32 }

// setFilter adds a hash to its block; passes reports whether it may have been added.
func setFilter(block []byte, hash uint64) {
	for i, salt := range filterSalts {
		bit := uint32(hash>>16) * salt >> 27
		block[4*i+int(bit>>3)] |= 1 << (bit & 7)
	}
}

func passes(block []byte, hash uint64) bool {
	for i, salt := range filterSalts {
		bit := uint32(hash>>16) * salt >> 27
		if block[4*i+int(bit>>3)]>>(bit&7)&1 == 0 {
			return false
		}
	}
	return true
}

// facts sorts the entries, and says how many there are.
func (k *keyHashes) facts() keyFacts {
	k.sort()
	distinct := uint64(0)
	for i, e := range k.entries {
		if i == 0 || e&hashMask != k.entries[i-1]&hashMask {
			distinct++
		}
	}
	return keyFacts{k.feature, uint64(len(k.entries)), (distinct*filterBits + 8*filterBlock - 1) / (8 * filterBlock)}
}

// write adds the filter and the buckets to a table.
func (k *keyHashes) write(table *sst.Writer, f keyFacts, stripes int) error {
	filter := make([]byte, f.blocks*filterBlock)
	for _, e := range k.entries {
		at := filterPlace(e, f.blocks) * filterBlock
		setFilter(filter[at:at+filterBlock], e)
	}
	var key, value []byte
	n := uint32(0)
	for chunk := range slices.Chunk(filter, filterChunkBytes) {
		key = keyPart(key[:0], f.feature, filterChunk, n)
		if err := table.Add(key, chunk); err != nil {
			return err
		}
		n++
	}
	bits, width := f.bucketBits(), stripeWidth(stripes)
	for from := 0; from < len(k.entries); {
		b := k.entries[from] >> (64 - bits)
		to := from
		value = value[:0]
		for ; to < len(k.entries) && k.entries[to]>>(64-bits) == b; to++ {
			value = binary.LittleEndian.AppendUint16(value, fingerprint(k.entries[to], bits))
		}
		for _, e := range k.entries[from:to] {
			if value = append(value, byte(e)); width == 2 {
				value = append(value, byte(e>>8))
			}
		}
		key = keyPart(key[:0], f.feature, keyBucket, uint32(b))
		if err := table.Add(key, value); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// maxBucketEntries bounds a bucket, for which keys can be chosen: a feature with a larger one is left out.
const maxBucketEntries = 1 << 20

// largestBucket returns how many entries the largest bucket has.
func (k *keyHashes) largestBucket(f keyFacts) int {
	shift := 64 - f.bucketBits()
	most, n := 0, 0
	for i, e := range k.entries {
		if i > 0 && e>>shift == k.entries[i-1]>>shift {
			n++
		} else {
			n = 1
		}
		most = max(most, n)
	}
	return most
}

// fingerprint returns what a bucket has of a hash.
func fingerprint(hash uint64, bucketBits int) uint16 {
	return uint16(hash << bucketBits >> (64 - fingerprintBits))
}

// keysOf returns what gathers the hashes of a feature's keys, nil where the segment's table is not to have it.
func (w *Writer) keysOf(f catalog.Feature) *keyHashes {
	if !isLookedUp(f) || w.rows < w.s.MinKeyRows {
		return nil
	}
	return &keyHashes{feature: f.ID}
}

// writeKeys writes the key table, unless there is none to write, and returns its size.
func (w *Writer) writeKeys(ctx context.Context) (int64, error) {
	slices.SortFunc(w.keys, func(a, b *keyHashes) int { return cmp.Compare(a.feature, b.feature) })
	var facts []keyFacts
	w.keys = slices.DeleteFunc(w.keys, func(k *keyHashes) bool {
		if k.full {
			return true
		}
		f := k.facts()
		if k.largestBucket(f) > maxBucketEntries {
			return true
		}
		facts = append(facts, f)
		return false
	})
	if len(w.keys) == 0 {
		return 0, nil
	}
	out, err := w.s.Blobs.Create(ctx, w.id.KeysName())
	if err != nil {
		return 0, err
	}
	defer out.Abort()
	buf := bufio.NewWriterSize(out, 256<<10)
	table := sst.NewWriter(buf)
	err = table.Add([]byte{keyFactsRecord}, appendKeyFacts(appendFacts(w.id[:], w.stripes), facts))
	for i, k := range w.keys {
		if err == nil {
			err = k.write(table, facts[i], len(w.stripes))
		}
	}
	size, ferr := table.Finish()
	if err := errors.Join(err, ferr, buf.Flush()); err != nil {
		return 0, fmt.Errorf("segment's key table: %w", err)
	}
	w.keys = nil
	return size, out.Commit(ctx)
}

// CheckKeys reads a segment's whole key table: its checksums, and that all that its facts say is there and well
// formed.
func (s *Store) CheckKeys(ctx context.Context, d catalog.SegmentDescriptor) error {
	segment, err := names.ParseID(d.ID)
	if err != nil {
		return err
	}
	k, err := s.readKeys(ctx, segment, d)
	if err != nil {
		return err
	}
	entries, blocks := map[catalog.FeatureID]uint64{}, map[catalog.FeatureID]uint64{}
	it := k.table.Iter(nil)
	for ok := it.SeekGE(ctx, []byte{keyRecord}); ok; ok = it.Next(ctx) {
		key, value := it.Key(), it.Value()
		if len(key) != 14 || key[0] != keyRecord {
			return wire.Corrupt(k.name, "key is malformed")
		}
		f := k.of(catalog.FeatureID(binary.BigEndian.Uint64(key[1:])))
		if f == nil {
			return wire.Corrupt(k.name, fmt.Sprintf("feature %x is not in the facts", key[1:9]))
		}
		n := uint64(binary.BigEndian.Uint32(key[10:]))
		switch key[9] {
		case filterChunk:
			if n*filterChunkBytes != blocks[f.feature]*filterBlock || len(value) == 0 || len(value)%filterBlock != 0 ||
				len(value) > filterChunkBytes {
				return wire.Corrupt(k.name, "filter is malformed")
			}
			blocks[f.feature] += uint64(len(value) / filterBlock)
		case keyBucket:
			b, reason := k.bucket(value)
			if reason == "" && (n>>f.bucketBits() != 0 || !slices.IsSorted(b.fingerprints())) {
				reason = "bucket is malformed"
			}
			for i := range b.n {
				if b.stripe(i) >= len(k.stripes) {
					reason = "entry names a stripe that the segment does not have"
				}
			}
			if reason != "" {
				return wire.Corrupt(k.name, reason)
			}
			entries[f.feature] += uint64(b.n)
		default:
			return wire.Corrupt(k.name, "key is malformed")
		}
	}
	if err := it.Err(); err != nil {
		return err
	}
	for _, f := range k.features {
		if entries[f.feature] != f.entries || blocks[f.feature] != f.blocks {
			return wire.Corrupt(k.name,
				fmt.Sprintf("feature %016x has %d entries and %d blocks: its facts say %d and %d",
					uint64(f.feature), entries[f.feature], blocks[f.feature], f.entries, f.blocks))
		}
	}
	return nil
}
