package catalog

import (
	"encoding/binary"
	"fmt"

	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/wire"
)

// A Repaired is what a repair did about one thing that was damaged. Repairs are never taken back from the listing, so
// that it says what the table has lost.
type Repaired struct {
	// Snapshot is the one that the repair made, and Index tells those of one repair apart. Commit sets both.
	Snapshot uint64
	Index    uint32
	// ID is that of the damaged segment or row bitmap, which verify passes over; empty: the damage is not of one.
	ID string
	// First and Last are the snapshots that the repair went back behind; 0: none. A change that was made against one of
	// them is refused.
	First, Last uint64
	Rows        uint64 // that the table lost by it
	What        string // was lost, for people
}

// MaxRepairedText bounds Repaired.What.
const MaxRepairedText = 1024

// Validate returns an error naming the first field that is wrong.
func (r Repaired) Validate() error {
	if r.ID != "" {
		if _, err := names.ParseID(r.ID); err != nil {
			return fmt.Errorf("repaired %w", err)
		}
	}
	if r.What == "" || len(r.What) > MaxRepairedText {
		return fmt.Errorf("repaired: text of %d bytes: want 1 to %d", len(r.What), MaxRepairedText)
	}
	if r.First > r.Last || (r.First == 0) != (r.Last == 0) {
		return fmt.Errorf("repaired: lost snapshots %d to %d", r.First, r.Last)
	}
	return nil
}

// RepairedKey returns the key of an entry: the space, the snapshot (8 BE) and the index (4 BE).
func RepairedKey(snapshot uint64, index uint32) []byte {
	key := binary.BigEndian.AppendUint64([]byte{RepairedSpace}, snapshot)
	return binary.BigEndian.AppendUint32(key, index)
}

// AppendRepaired appends the value of an entry:
//
//	id (16), zeros: none | first lost snapshot | last one | rows | what was lost, a string
func AppendRepaired(dst []byte, r Repaired) []byte {
	var id names.ID
	if r.ID != "" {
		id, _ = names.ParseID(r.ID)
	}
	dst = append(dst, id[:]...)
	for _, v := range [...]uint64{r.First, r.Last, r.Rows} {
		dst = binary.AppendUvarint(dst, v)
	}
	return wire.AppendString(dst, r.What)
}

// IsRepairedKey reports whether a key is one of RepairedKey.
func IsRepairedKey(key []byte) bool { return len(key) == 1+8+4 && key[0] == RepairedSpace }

// ParseRepaired decodes an entry; the reason is empty when it is right.
func ParseRepaired(key, value []byte) (Repaired, string) {
	if !IsRepairedKey(key) {
		return Repaired{}, "key of a repair is malformed"
	}
	d := wire.Decoder{Rest: value}
	var id names.ID
	copy(id[:], d.Take(16))
	r := Repaired{
		Snapshot: binary.BigEndian.Uint64(key[1:]), Index: binary.BigEndian.Uint32(key[9:]),
		First: d.Uvarint(), Last: d.Uvarint(), Rows: d.Uvarint(), What: d.String(),
	}
	if id != (names.ID{}) {
		r.ID = id.String()
	}
	d.End()
	if d.Reason != "" {
		return Repaired{}, "repair: " + d.Reason
	}
	if err := r.Validate(); err != nil {
		return Repaired{}, err.Error()
	}
	return r, ""
}
