package usage

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/wire"
)

// SPEC.md has the bytes. The numbers are written to disk.
const (
	magic   = "DSIUSGE"
	version = 2

	recordsKind = 1
	rollupKind  = 2

	headBytes = 8
	sumBytes  = 8

	maxObject   = 64 << 20
	maxString   = 4096
	maxFeatures = 1 << 20
	maxStrings  = 1 << 20
	maxDay      = 3_000_000

	// The fewest bytes that each takes: counts are held to what is left.
	minMerged  = 17
	minString  = 1
	minFeature = 9
	minRecord  = 38
	minUse     = 7
)

// An id names the records of one process.
type id [16]byte

// A mergedID is an id that is in a rollup, and since when.
type mergedID struct {
	id id
	at int64
}

// A file is what an object holds.
type file struct {
	kind    uint8
	day     day
	written int64
	merged  []mergedID // ascending
	records []*Record
}

// append appends the object. The file's records, and their features, are put in order.
func (f *file) append(dst []byte) []byte {
	start := len(dst)
	dst = append(append(dst, magic...), version)
	dst = append(dst, f.kind)
	dst = binary.AppendUvarint(dst, uint64(f.day))
	dst = binary.AppendUvarint(dst, uint64(f.written))
	dst = binary.AppendUvarint(dst, uint64(len(f.merged)))
	for _, m := range f.merged {
		dst = binary.AppendUvarint(append(dst, m.id[:]...), uint64(m.at))
	}
	slices.SortFunc(f.records, func(a, b *Record) int { return compareKeys(&a.Key, &b.Key) })
	positions := map[string]int{}
	for _, r := range f.records {
		for _, s := range r.strings() {
			positions[*s] = 0
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(positions)))
	for i, s := range sortedKeys(positions) {
		positions[s] = i
		dst = wire.AppendString(dst, s)
	}
	type named struct {
		name string
		last int64
	}
	names := map[catalog.FeatureID]named{}
	for _, r := range f.records {
		for i := range r.Features {
			u := &r.Features[i]
			// A feature that was renamed has the name that was read last.
			if n, ok := names[u.ID]; !ok || u.Last.Unix() > n.last {
				names[u.ID] = named{u.Name, u.Last.Unix()}
			}
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(names)))
	featurePositions := make(map[catalog.FeatureID]int, len(names))
	for i, f := range sortedKeys(names) {
		featurePositions[f] = i
		dst = wire.AppendString(binary.LittleEndian.AppendUint64(dst, uint64(f)), names[f].name)
	}
	dst = binary.AppendUvarint(dst, uint64(len(f.records)))
	for _, r := range f.records {
		dst = r.append(dst, positions, featurePositions)
	}
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

// strings are those of a record that are among the strings of an object, in the order of the record.
func (r *Record) strings() [7]*string {
	return [...]*string{&r.Job, &r.User, &r.Program, &r.Branch, &r.List, &r.Host, &r.Purpose}
}

// numbers are the counters of a record in their order.
func (c *Counters) numbers() [14]*uint64 {
	return [...]*uint64{
		&c.Readers, &c.Rows, &c.Batches, &c.Requests, &c.BytesNeeded, &c.BytesUnneeded, &c.StoredRows, &c.StoredSlots,
		&c.EmittedRows, &c.EmittedSlots, &c.SentReads, &c.SentLists, &c.BytesDown, &c.BytesCached,
	}
}

// firstNumbers of numbers stand before the durations.
const firstNumbers = 6

func (c *Counters) durations() [4]*time.Duration {
	return [...]*time.Duration{&c.Stall, &c.Decode, &c.Assemble, &c.Read}
}

func (u *FeatureUse) numbers() [5]*uint64 {
	return [...]*uint64{&u.Readers, &u.Stripes, &u.Rows, &u.BytesNeeded, &u.BytesUnneeded}
}

func (r *Record) append(dst []byte, positions map[string]int, features map[catalog.FeatureID]int) []byte {
	for _, s := range r.strings() {
		dst = binary.AppendUvarint(dst, uint64(positions[*s]))
	}
	dst = binary.LittleEndian.AppendUint64(dst, r.Filter)
	start, end := r.Start.Unix(), r.End.Unix()
	for _, n := range [...]uint64{r.PID, r.Snapshot, uint64(start), uint64(end - start)} {
		dst = binary.AppendUvarint(dst, n)
	}
	numbers := r.Counters.numbers()
	for _, n := range numbers[:firstNumbers] {
		dst = binary.AppendUvarint(dst, *n)
	}
	for _, d := range r.durations() {
		dst = binary.AppendUvarint(dst, uint64(*d))
	}
	for _, n := range numbers[firstNumbers:] {
		dst = binary.AppendUvarint(dst, *n)
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.Features)))
	slices.SortFunc(r.Features, func(a, b FeatureUse) int { return cmp.Compare(a.ID, b.ID) })
	before := -1
	for i := range r.Features {
		u := &r.Features[i]
		position := features[u.ID]
		dst = binary.AppendUvarint(dst, uint64(position-before-1))
		before = position
		for _, n := range u.numbers() {
			dst = binary.AppendUvarint(dst, *n)
		}
		dst = binary.AppendUvarint(dst, uint64(end-u.Last.Unix()))
	}
	return dst
}

func compareKeys(a, b *Key) int {
	return cmp.Or(strings.Compare(a.Job, b.Job), strings.Compare(a.User, b.User), strings.Compare(a.Program, b.Program),
		strings.Compare(a.Purpose, b.Purpose),
		strings.Compare(a.Branch, b.Branch), strings.Compare(a.List, b.List), cmp.Compare(a.Filter, b.Filter))
}

// A decoded is an object whose bytes are right, up to its records, which each gives.
type decoded struct {
	file     // without records
	count    uint64
	strings  []string
	features []Feature
	body     []byte // of the records
}

// decode checks all of an object's bytes. The error is a format.CorruptError, or a format.UnsupportedError of a newer
// version. It allocates some times as much as they are.
func decode(name string, b []byte) (*decoded, error) {
	bad := func(offset int, reason string) error {
		return &format.CorruptError{Object: name, Stripe: -1, Offset: int64(offset), Reason: reason}
	}
	if len(b) < headBytes+sumBytes || string(b[:len(magic)]) != magic {
		return nil, bad(-1, "no usage records")
	}
	end := len(b) - sumBytes
	// All versions have the checksum, so that damage is not taken for a newer version.
	if binary.LittleEndian.Uint64(b[end:]) != xxhash.Sum64(b[:end]) {
		return nil, bad(end, "checksum mismatch")
	}
	switch v := b[len(magic)]; {
	case v < version:
		return nil, bad(len(magic), fmt.Sprintf("usage records of version %d, which no release wrote", v))
	case v > version:
		return nil, &format.UnsupportedError{
			Object: name, Stripe: -1, Offset: int64(len(magic)),
			Reason: fmt.Sprintf("usage records of version %d: this program reads version %d", v, version),
		}
	}
	d := wire.Decoder{Rest: b[headBytes:end]}
	out := &decoded{}
	out.kind = d.Byte()
	if out.kind != recordsKind && out.kind != rollupKind {
		d.Fail("unknown kind")
	}
	out.day = day(d.Max(maxDay, "day"))
	out.written = int64(d.Max(math.MaxInt64, "time"))
	n := d.Count(minMerged)
	if n > 0 && out.kind == recordsKind {
		d.Fail("records of a process that merge others")
	}
	for range n {
		var m mergedID
		copy(m.id[:], d.Take(16))
		m.at = int64(d.Max(math.MaxInt64, "time"))
		if k := len(out.merged); k > 0 && slices.Compare(out.merged[k-1].id[:], m.id[:]) >= 0 {
			d.Fail("merged ids out of order")
		}
		out.merged = append(out.merged, m)
	}
	if n = d.Count(minString); n > maxStrings {
		d.Fail("too many strings")
	}
	for range min(n, maxStrings) {
		s := text(&d)
		if k := len(out.strings); k > 0 && out.strings[k-1] >= s {
			d.Fail("strings out of order")
		}
		out.strings = append(out.strings, s)
	}
	n = d.Count(minFeature)
	if n > maxFeatures {
		d.Fail("too many features")
	}
	for range min(n, maxFeatures) {
		f := Feature{ID: catalog.FeatureID(d.U64()), Name: text(&d)}
		if k := len(out.features); f.ID == 0 || k > 0 && out.features[k-1].ID >= f.ID {
			d.Fail("features out of order")
		}
		out.features = append(out.features, f)
	}
	out.count = d.Count(minRecord)
	if d.Reason == "" {
		out.body = d.Rest
		d.Reason, d.Left = out.read(nil)
	}
	if d.Reason != "" {
		return nil, bad(end-d.Left, d.Reason)
	}
	return out, nil
}

// each gives the records to visit, one at a time. They are good until visit returns; what it returns ends the rest.
func (f *decoded) each(visit func(*Record) error) error {
	var err error
	f.read(func(r *Record) bool {
		err = visit(r)
		return err == nil
	})
	return err
}

// read decodes the records; visit, which may be nil, says whether to go on. left is how many bytes come after what is
// wrong.
func (f *decoded) read(visit func(*Record) bool) (reason string, left int) {
	d := wire.Decoder{Rest: f.body}
	var r Record
	var before Key
	texts := r.strings()
	for i := range f.count {
		for _, s := range texts {
			if at := d.Uvarint(); at < uint64(len(f.strings)) {
				*s = f.strings[at]
			} else {
				d.Fail("no such string")
			}
		}
		r.Filter = d.U64()
		r.PID, r.Snapshot = d.Uvarint(), d.Uvarint()
		start := int64(d.Max(lastSecond, "time"))
		end := start + int64(d.Max(uint64(lastSecond-start), "time"))
		r.Start, r.End = seconds(start), seconds(end)
		numbers := r.Counters.numbers()
		for _, n := range numbers[:firstNumbers] {
			*n = d.Uvarint()
		}
		for _, t := range r.durations() {
			*t = time.Duration(d.Max(math.MaxInt64, "duration"))
		}
		for _, n := range numbers[firstNumbers:] {
			*n = d.Uvarint()
		}
		n := d.Count(minUse)
		r.Features = r.Features[:0]
		position := -1
		for range n {
			skip := d.Uvarint()
			if skip >= uint64(len(f.features)-position-1) {
				d.Fail("no such feature")
				break
			}
			position += 1 + int(skip)
			u := FeatureUse{ID: f.features[position].ID, Name: f.features[position].Name}
			for _, n := range u.numbers() {
				*n = d.Uvarint()
			}
			u.Last = seconds(end - int64(d.Max(uint64(end-start), "time")))
			r.Features = append(r.Features, u)
		}
		if i > 0 && compareKeys(&before, &r.Key) >= 0 {
			d.Fail("records out of order")
		}
		before = r.Key
		if d.Reason != "" {
			return d.Reason, d.Left
		}
		if visit != nil && !visit(&r) {
			return "", 0
		}
	}
	d.End()
	return d.Reason, d.Left
}

func seconds(n int64) time.Time { return time.Unix(n, 0).UTC() }

// text takes a string off the front of d.
func text(d *wire.Decoder) string {
	s := d.Take(d.Max(maxString, "length"))
	if !utf8.Valid(s) {
		d.Fail("string is not UTF-8")
	}
	return string(s)
}
