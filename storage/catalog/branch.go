package catalog

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/dsistore/dsistore/storage/wire"
)

// A Branch is a name for what a job reads: the rows of a snapshot, under overlays, and of those the ones in a sample
// list. It says of each in which snapshot it is meant, so that what it reads never changes, whatever becomes of the
// table: gc keeps all that those snapshots name. Branches are entries of the newest snapshot.
type Branch struct {
	Name     string
	Snapshot uint64 // whose segments and deletes it reads
	// Overlays lie over the rows, the lowest first, besides those merged in Snapshot, which lie below them.
	Overlays []Pin
	// List is the sample list; an empty name: all rows.
	List    Pin
	Created time.Time
	Owner   string // at most 256 bytes, for people
	// Added is the snapshot that set it. Commit sets it.
	Added uint64
}

// A Pin names an overlay or a sample list as it was in a snapshot. What it has are the layers and rows of that
// snapshot's segments: of those that only the branch's snapshot has, because a compaction lies between the two, it has
// none.
type Pin struct {
	Name     string
	Snapshot uint64
}

const (
	maxOwner          = 256
	maxBranchOverlays = 1024
)

// Validate returns an error naming the first field that is wrong.
func (b Branch) Validate() error {
	if err := CheckName("branch", b.Name); err != nil {
		return err
	}
	if b.Snapshot == 0 {
		return fmt.Errorf("branch %s: snapshot 0", b.Name)
	}
	if len(b.Overlays) > maxBranchOverlays {
		return fmt.Errorf("branch %s: %d overlays: want at most %d", b.Name, len(b.Overlays), maxBranchOverlays)
	}
	seen := map[string]bool{}
	for _, o := range b.Overlays {
		if err := CheckName("overlay", o.Name); err != nil {
			return fmt.Errorf("branch %s: %w", b.Name, err)
		}
		if o.Snapshot == 0 || seen[o.Name] {
			return fmt.Errorf("branch %s: overlay %s of snapshot %d: want each once, of a snapshot from 1 on", b.Name,
				o.Name, o.Snapshot)
		}
		seen[o.Name] = true
	}
	if b.List.Name != "" {
		if err := CheckName("sample list", b.List.Name); err != nil {
			return fmt.Errorf("branch %s: %w", b.Name, err)
		}
	}
	if (b.List.Name == "") != (b.List.Snapshot == 0) {
		return fmt.Errorf("branch %s: sample list %q of snapshot %d: want both or neither", b.Name, b.List.Name,
			b.List.Snapshot)
	}
	if len(b.Owner) > maxOwner {
		return fmt.Errorf("branch %s: owner of %d bytes: want at most %d", b.Name, len(b.Owner), maxOwner)
	}
	return nil
}

// Pins returns the snapshots that the branch keeps, each once.
func (b Branch) Pins() []uint64 {
	out := []uint64{b.Snapshot}
	add := func(n uint64) {
		for _, o := range out {
			if o == n {
				return
			}
		}
		out = append(out, n)
	}
	for _, o := range b.Overlays {
		add(o.Snapshot)
	}
	if b.List.Name != "" {
		add(b.List.Snapshot)
	}
	return out
}

// AppendBranch appends the value of a branch's entry; the name is its key.
//
//	added | snapshot | created, nanoseconds since 1970 (8 LE) | owner | overlays | (name | snapshot)... |
//	name of the sample list | its snapshot
func AppendBranch(dst []byte, b Branch) []byte {
	dst = binary.AppendUvarint(dst, b.Added)
	dst = binary.AppendUvarint(dst, b.Snapshot)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(b.Created.UnixNano()))
	dst = wire.AppendString(dst, b.Owner)
	dst = binary.AppendUvarint(dst, uint64(len(b.Overlays)))
	for _, p := range append(b.Overlays[:len(b.Overlays):len(b.Overlays)], b.List) {
		dst = wire.AppendString(dst, p.Name)
		dst = binary.AppendUvarint(dst, p.Snapshot)
	}
	return dst
}

// DecodeBranch decodes what AppendBranch wrote; the reason is empty when it is right.
func DecodeBranch(name string, b []byte) (Branch, string) {
	d := wire.Decoder{Rest: b}
	out := Branch{Name: name, Added: d.Uvarint(), Snapshot: d.Uvarint(), Created: time.Unix(0, int64(d.U64())).UTC(),
		Owner: d.String()}
	for range d.Max(min(uint64(len(d.Rest)), maxBranchOverlays), "overlays") {
		out.Overlays = append(out.Overlays, Pin{d.String(), d.Uvarint()})
	}
	out.List = Pin{d.String(), d.Uvarint()}
	d.End()
	if d.Reason != "" {
		return Branch{}, fmt.Sprintf("branch %.150q: %s", name, d.Reason)
	}
	if err := out.Validate(); err != nil {
		return Branch{}, err.Error()
	}
	return out, ""
}
