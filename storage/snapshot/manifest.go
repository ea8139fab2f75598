package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/wire"
)

// The bytes of a snapshot object. Numbers of the header are little-endian.
//
//	offset  size
//	     0     8  magic "DSISNAP" and version 1
//	     8     8  number
//	    16     8  time, nanoseconds since 1970, signed
//	    24     8  rows of the snapshot
//	    32     8  segments
//	    40     8  bytes
//	    48     8  features
//	    56     8  rows added
//	    64     8  rows removed
//	    72    16  commit id, random: who wrote this
//	    88    16  commit id of the snapshot before; zeros: this is the first
//	   104     8  the table's id
//	   112     8  length of the body
//	   120     8  xxhash64 of the body
//	   128     1  length of the operation, at most 31
//	   129    31  operation, zeros after it
//	   160     8  oldest: snapshots below it have expired
//	   168     8  deleted rows, of the rows of the snapshot
//	   176     8  xxhash64 of bytes 0 to 175
//	   184        body: the listing tree, the schema tree; then, as varints, the number that the next overlay gets,
//	              how many overlays, sample lists and branches there are, and how often a feature was dropped or
//	              renamed
const (
	snapshotMagic   = "DSISNAP"
	snapshotVersion = 1
	HeaderBytes     = 184
	MaxOperation    = 31
	// MaxBody bounds what an object may make a reader allocate. Writers keep memtables to some 32 KiB.
	MaxBody = 4 << 20
)

// A Manifest is the decoded snapshot object.
type Manifest struct {
	Info     Info
	Commit   names.ID
	Parent   names.ID // commit id of the snapshot before; zero: this is the first
	Table    names.TableID
	bodySize uint64
	bodySum  uint64
	Listing  lsm.Tree
	Schema   lsm.Tree

	NextOverlay               uint64
	Overlays, Lists, Branches uint64
	Retired                   uint64 // how often a feature was dropped or renamed
}

func AppendManifest(dst []byte, m Manifest) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, HeaderBytes)...)
	dst = lsm.AppendTree(dst, m.Listing)
	dst = lsm.AppendTree(dst, m.Schema)
	for _, v := range [...]uint64{m.NextOverlay, m.Overlays, m.Lists, m.Branches, m.Retired} {
		dst = binary.AppendUvarint(dst, v)
	}
	h, body := dst[start:start+HeaderBytes], dst[start+HeaderBytes:]
	copy(h, snapshotMagic)
	h[7] = snapshotVersion
	le := binary.LittleEndian
	for i, v := range [...]uint64{
		m.Info.Number, uint64(m.Info.Time.UnixNano()), m.Info.Rows, m.Info.Segments, m.Info.Bytes, m.Info.Features,
		m.Info.AddedRows, m.Info.RemovedRows,
	} {
		le.PutUint64(h[8+8*i:], v)
	}
	copy(h[72:], m.Commit[:])
	copy(h[88:], m.Parent[:])
	copy(h[104:], m.Table[:])
	le.PutUint64(h[112:], uint64(len(body)))
	le.PutUint64(h[120:], xxhash.Sum64(body))
	h[128] = byte(len(m.Info.Operation))
	copy(h[129:160], m.Info.Operation)
	le.PutUint64(h[160:], m.Info.Oldest)
	le.PutUint64(h[168:], m.Info.DeletedRows)
	le.PutUint64(h[176:], xxhash.Sum64(h[:176]))
	return dst
}

// newerSnapshot returns an error when b begins a snapshot of a version that this program does not know. What follows
// the version byte is then that version's own, its checksum too: where that is this version's, the byte is damaged.
func newerSnapshot(name string, b []byte) error {
	if len(b) >= 8 && string(b[:7]) == snapshotMagic && b[7] > snapshotVersion {
		if len(b) >= HeaderBytes {
			ours := bytes.Clone(b[:HeaderBytes])
			ours[7] = snapshotVersion
			if binary.LittleEndian.Uint64(ours[176:]) == xxhash.Sum64(ours[:176]) {
				return wire.Corrupt(name, fmt.Sprintf("version byte %d, and the checksum of version %d", b[7],
					snapshotVersion))
			}
		}
		return fmt.Errorf("%s: %w: snapshot of version %d: this program reads version %d; use a newer program",
			name, format.ErrUnsupported, b[7], snapshotVersion)
	}
	return nil
}

// decodeHeader decodes the first headerBytes of the object of the given snapshot number.
func decodeHeader(h []byte, number uint64) (m Manifest, reason string) {
	if len(h) < HeaderBytes {
		return m, "shorter than a snapshot's header"
	}
	le := binary.LittleEndian
	if string(h[:7]) != snapshotMagic {
		return m, "no snapshot: wrong magic"
	}
	if h[7] != snapshotVersion {
		return m, "snapshot of another version"
	}
	if le.Uint64(h[176:]) != xxhash.Sum64(h[:176]) {
		return m, "header checksum mismatch"
	}
	var v [8]uint64
	for i := range v {
		v[i] = le.Uint64(h[8+8*i:])
	}
	if v[0] != number {
		return m, fmt.Sprintf("holds snapshot %d", v[0])
	}
	n := h[128]
	if n > MaxOperation || !bytes.Equal(h[129+int(n):160], make([]byte, 31-int(n))) {
		return m, "operation out of range"
	}
	oldest, deleted := le.Uint64(h[160:]), le.Uint64(h[168:])
	if number > names.MaxSnapshot || oldest > number || deleted > v[2] {
		return m, fmt.Sprintf("oldest snapshot %d, %d of %d rows deleted: out of range", oldest, deleted, v[2])
	}
	m.Info = Info{
		Number: v[0], Time: time.Unix(0, int64(v[1])).UTC(), Rows: v[2], Segments: v[3], Bytes: v[4], Features: v[5],
		AddedRows: v[6], RemovedRows: v[7],
		Operation: string(h[129 : 129+int(n)]), Oldest: oldest, DeletedRows: deleted,
	}
	copy(m.Commit[:], h[72:88])
	copy(m.Parent[:], h[88:104])
	copy(m.Table[:], h[104:112])
	if m.Table == (names.TableID{}) || (m.Parent == names.ID{}) != (number == 1) {
		return m, "of no table, or without the snapshot before it"
	}
	m.bodySize, m.bodySum = le.Uint64(h[112:]), le.Uint64(h[120:])
	if m.bodySize > MaxBody {
		return m, fmt.Sprintf("body of %d bytes: want at most %d", m.bodySize, MaxBody)
	}
	return m, ""
}

// DecodeManifest decodes a whole snapshot object. The trees borrow b.
func DecodeManifest(b []byte, number uint64) (Manifest, string) {
	m, reason := decodeHeader(b, number)
	if reason != "" {
		return Manifest{}, reason
	}
	body := b[HeaderBytes:]
	if uint64(len(body)) != m.bodySize {
		return Manifest{}, fmt.Sprintf("body of %d bytes: want %d", len(body), m.bodySize)
	}
	if xxhash.Sum64(body) != m.bodySum {
		return Manifest{}, "body checksum mismatch"
	}
	d := wire.Decoder{Rest: body}
	m.Listing = lsm.DecodeTree(&d, lsm.Listing)
	m.Schema = lsm.DecodeTree(&d, lsm.Schema)
	m.NextOverlay = d.Max(1<<32, "overlay number")
	m.Overlays, m.Lists, m.Branches, m.Retired = d.Uvarint(), d.Uvarint(), d.Uvarint(), d.Uvarint()
	d.End()
	return m, d.Reason
}
