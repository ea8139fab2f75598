package segment

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/sst"
	"github.com/dsistore/dsistore/storage/wire"
)

// The keys of a segment's index.sst:
//
//	segment id (16) | 00                       the segment's rows and stripes
//	segment id (16) | 01 | feature id (8 BE)   a feature file: see appendLocation
//	segment id (16) | fd                       the segment's objects
//
// The first comes first so that opening a segment finds it in the head of the table.
const (
	factsRecord   = 0x00
	featureRecord = 0x01
	objectsRecord = 0xfd

	// indexHead is how much of the front of an index.sst is read with its tail: the block with the facts.
	indexHead = 2 << 10
)

func recordKey(i names.ID, kind byte) []byte { return append(i[:len(i):len(i)], kind) }

func featureKey(i names.ID, f catalog.FeatureID) []byte {
	return binary.BigEndian.AppendUint64(recordKey(i, featureRecord), uint64(f))
}

// An Object names an object of a segment.
type Object struct {
	Name string
	Size uint64
}

// An Entry says where a feature file of a segment is and what is in it.
type Entry struct {
	Object     string // blob name
	ObjectSize uint64
	Offset     uint64 // of the feature file in it; Offset+Length is at most ObjectSize
	Length     uint64
	Meta       *format.FileMeta
}

// A location is where a feature file of a segment is.
type location struct {
	kind   names.ObjectKind
	number uint64
	size   uint64 // of the object
	offset uint64
	length uint64
}

// appendLocation appends the front of a feature record; the file's directory (format.AppendMeta) follows it.
//
//	object kind (1) | object number | object size | offset | length | directory
func appendLocation(dst []byte, l location) []byte {
	dst = append(dst, byte(l.kind))
	dst = binary.AppendUvarint(dst, l.number)
	dst = binary.AppendUvarint(dst, l.size)
	dst = binary.AppendUvarint(dst, l.offset)
	return binary.AppendUvarint(dst, l.length)
}

// decodeLocation takes a location off the front of d.
func decodeLocation(d *wire.Decoder) location {
	l := location{kind: names.ObjectKind(d.Byte())}
	if l.kind != names.PackObject && l.kind != names.FileObject {
		d.Fail("unknown kind of object")
	}
	l.number = d.Max(names.MaxObjectNumber, "object number")
	l.size = d.Max(math.MaxInt64, "object size")
	l.offset = d.Max(l.size, "offset")
	l.length = d.Max(l.size-l.offset, "length")
	return l
}

// facts are a segment's rows and stripes.
//
//	rows | number of stripes | rows of each stripe
func appendFacts(dst []byte, stripes []uint32) []byte {
	rows := uint64(0)
	for _, n := range stripes {
		rows += uint64(n)
	}
	dst = binary.AppendUvarint(dst, rows)
	dst = binary.AppendUvarint(dst, uint64(len(stripes)))
	for _, n := range stripes {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return dst
}

func decodeFacts(b []byte, rows uint64) (stripes []uint32, reason string) {
	d := wire.Decoder{Rest: b}
	stripes = takeFacts(&d, rows)
	d.End()
	return stripes, d.Reason
}

// takeFacts takes the facts of a segment of so many rows off the front of d.
func takeFacts(d *wire.Decoder, rows uint64) (stripes []uint32) {
	if got := d.Uvarint(); got != rows {
		d.Fail(fmt.Sprintf("%d rows: the listing says %d", got, rows))
	}
	sum := uint64(0)
	// A stripe takes a byte at least, so the count sizes nothing that the bytes do not.
	for range d.Max(uint64(len(d.Rest)), "stripes") {
		n := d.Max(math.MaxUint32, "stripe rows")
		stripes = append(stripes, uint32(n))
		sum += n
	}
	if sum != rows {
		d.Fail("stripes do not add up to the rows")
	}
	return stripes
}

// appendObjects appends the objects record: number of objects | (kind (1) | number | size)...
func appendObjects(dst []byte, objects []segmentObject) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(objects)))
	for _, o := range objects {
		dst = append(dst, byte(o.kind))
		dst = binary.AppendUvarint(dst, o.number)
		dst = binary.AppendUvarint(dst, o.size)
	}
	return dst
}

type segmentObject struct {
	kind         names.ObjectKind
	number, size uint64
}

// A Reader is an open segment index. Safe for concurrent use.
type Reader struct {
	id      names.ID
	d       catalog.SegmentDescriptor
	table   *sst.Reader
	stripes []uint32
	limits  format.Limits
}

// Open opens the index of a segment, committed or not: one read as a rule.
func (s *Store) Open(ctx context.Context, d catalog.SegmentDescriptor) (*Reader, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	segment, err := names.ParseID(d.ID)
	if err != nil {
		return nil, err
	}
	g := &Reader{id: segment, d: d, limits: s.Limits}
	fetch := sst.Fetch{}
	if object.HighLatency(s.Blobs) {
		fetch = lsm.RemoteFetch(d.IndexSize)
	}
	fetch.Head = indexHead
	if g.table, err = lsm.OpenTable(ctx, s.Blobs, d.Index, d.IndexSize, fetch); err != nil {
		return nil, err
	}
	v, err := g.table.Get(ctx, recordKey(segment, factsRecord))
	if err != nil {
		return nil, err
	}
	reason := "no record of the segment's stripes"
	if v[0] != nil {
		g.stripes, reason = decodeFacts(v[0], d.Rows)
	}
	if reason != "" {
		return nil, wire.Corrupt(d.Index, reason)
	}
	return g, nil
}

// StripeRows returns the rows of each stripe, the same for every feature of the segment. Borrowed for ever: do not
// write.
func (g *Reader) StripeRows() []uint32 { return g.stripes }

// Lookup returns the entries of the given features in order; nil where the segment does not have the feature. The
// entries of dedup groups (Meta.Group) are looked up the same way.
func (g *Reader) Lookup(ctx context.Context, ids ...catalog.FeatureID) ([]*Entry, error) {
	keys := make([][]byte, len(ids))
	for i, f := range ids {
		keys[i] = featureKey(g.id, f)
	}
	values, err := g.table.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	out := make([]*Entry, len(ids))
	for i, v := range values {
		if v == nil {
			continue
		}
		if out[i], err = g.entry(ids[i], v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Entries returns all entries, in id order.
func (g *Reader) Entries(ctx context.Context) ([]*Entry, error) {
	var out []*Entry
	err := g.Each(ctx, func(e *Entry) error {
		out = append(out, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Each calls visit for every entry, in id order, until visit returns an error, which Each then returns. Entries are the
// visitor's to keep: what it does not keep takes no memory after the call, however many features the segment has.
func (g *Reader) Each(ctx context.Context, visit func(*Entry) error) error {
	it := g.table.Iter(recordKey(g.id, featureRecord+1))
	for ok := it.SeekGE(ctx, recordKey(g.id, featureRecord)); ok; ok = it.Next(ctx) {
		f, reason := parseFeatureKey(it.Key(), g.id)
		if reason != "" {
			return wire.Corrupt(g.d.Index, reason)
		}
		e, err := g.entry(f, it.Value())
		if err != nil {
			return err
		}
		if err := visit(e); err != nil {
			return err
		}
	}
	return it.Err()
}

// GroupName returns the name of a dedup group, which is that of its first feature, from its inverse's directory.
func GroupName(inverse *format.FileMeta) string { return strings.TrimPrefix(inverse.Name, inverseOf) }

func parseFeatureKey(k []byte, segment names.ID) (catalog.FeatureID, string) {
	if len(k) != 25 || names.ID(k[:16]) != segment || k[16] != featureRecord {
		return 0, "index key is malformed"
	}
	return catalog.FeatureID(binary.BigEndian.Uint64(k[17:])), ""
}

// entry decodes a feature record and holds it to the segment.
func (g *Reader) entry(f catalog.FeatureID, v []byte) (*Entry, error) {
	e, err := decodeEntry(g.id, f, v, g.stripes, g.limits)
	if err != nil {
		name := fmt.Sprintf("%016x", uint64(f))
		if e != nil && e.Meta.Name != "" {
			name = e.Meta.Name
		}
		return nil, format.Locate(err, g.d.Index, name, 0)
	}
	return e, nil
}

// decodeEntry decodes a feature record and holds it to the feature and the segment's stripes. Errors match
// format.ErrCorrupt or ErrUnsupported; the caller adds the place.
func decodeEntry(segment names.ID, f catalog.FeatureID, v []byte, stripes []uint32,
	limits format.Limits) (*Entry, error) {
	d := wire.Decoder{Rest: v}
	l := decodeLocation(&d)
	if d.Reason != "" {
		return nil, wire.Corrupt("", d.Reason)
	}
	meta, err := format.DecodeMeta(d.Rest, limits)
	if err != nil {
		return nil, err
	}
	e := &Entry{
		Object: segment.ObjectName(l.kind,
			l.number), ObjectSize: l.size, Offset: l.offset, Length: l.length, Meta: meta,
	}
	if reason := checkEntry(e, segment, f, stripes); reason != "" {
		return e, wire.Corrupt("", reason)
	}
	return e, nil
}

// saltOf returns the salt of a feature file of a segment (SPEC.md, Segment index).
func saltOf(segment names.ID, f catalog.FeatureID) uint32 {
	var b [24]byte
	copy(b[:], segment[:])
	binary.BigEndian.PutUint64(b[16:], uint64(f))
	return uint32(xxhash.Sum64(b[:]))
}

// checkEntry holds an entry to its segment, its feature and the segment's stripes; the reason is empty when it fits.
func checkEntry(e *Entry, segment names.ID, f catalog.FeatureID, stripes []uint32) string {
	m := e.Meta
	if m.Feature != uint64(f) {
		return fmt.Sprintf("directory is of feature %016x", m.Feature)
	}
	if m.Salt != saltOf(segment, f) {
		return fmt.Sprintf("feature %016x was written for another segment", m.Feature)
	}
	if len(m.Stripes) != len(stripes) {
		return fmt.Sprintf("%d stripes: the segment has %d", len(m.Stripes), len(stripes))
	}
	if end := m.End(); end > e.Length {
		return fmt.Sprintf("stripes end at %d of the %d bytes of the feature file", end, e.Length)
	}
	for i, s := range m.Stripes {
		if s.Rows != stripes[i] {
			return fmt.Sprintf("stripe %d has %d rows: the segment has %d", i, s.Rows, stripes[i])
		}
	}
	return ""
}

// Objects returns the packs and single feature files of the segment.
func (g *Reader) Objects(ctx context.Context) ([]Object, error) {
	v, err := g.table.Get(ctx, recordKey(g.id, objectsRecord))
	if err != nil {
		return nil, err
	}
	if v[0] == nil {
		return nil, wire.Corrupt(g.d.Index, "no record of the segment's objects")
	}
	d := wire.Decoder{Rest: v[0]}
	var out []Object
	for range d.Max(uint64(len(d.Rest)), "objects") {
		l := location{kind: names.ObjectKind(d.Byte()), number: d.Max(names.MaxObjectNumber, "object number")}
		if l.kind != names.PackObject && l.kind != names.FileObject {
			d.Fail("unknown kind of object")
		}
		size := d.Max(math.MaxInt64, "object size")
		out = append(out, Object{Name: g.id.ObjectName(l.kind, l.number), Size: size})
	}
	d.End()
	if d.Reason == "" && uint64(len(out)) != uint64(g.d.Objects) {
		d.Reason = fmt.Sprintf("%d objects: the listing says %d", len(out), g.d.Objects)
	}
	if d.Reason != "" {
		return nil, wire.Corrupt(g.d.Index, d.Reason)
	}
	return out, nil
}
