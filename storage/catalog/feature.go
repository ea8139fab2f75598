package catalog

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/wire"
)

// A FeatureID names a feature for ever: the 64-bit hash of its first name and generation, so that writers who never met
// give one feature one id. A feature dropped and added again has the next generation. Never 0. Commit refuses two
// different features of one id.
type FeatureID uint64

// NewFeatureID returns the id of the generation-th feature (0: the first) that was added as name.
func NewFeatureID(name string, generation uint32) FeatureID {
	h := xxhash.New()
	h.WriteString(name)
	var g [4]byte
	binary.LittleEndian.PutUint32(g[:], generation)
	h.Write(g[:])
	return FeatureID(max(1, h.Sum64()))
}

// FreshID returns the id and the generation of a new feature: taken are the ids that features of the table have or had.
func FreshID(name string, taken map[FeatureID]bool) (id FeatureID, generation uint32) {
	for id = NewFeatureID(name, 0); taken[id]; id = NewFeatureID(name, generation) {
		generation++
	}
	return id, generation
}

// Role says what a feature is for. The numbers are written to disk.
type Role uint8

const (
	RoleFeature    Role = 0
	RoleLabel      Role = 1
	RoleSessionKey Role = 2
	RoleRequestKey Role = 3
	RoleUserKey    Role = 4
	RoleTimeKey    Role = 5
)

var roleNames = [...]string{
	RoleFeature: "feature", RoleLabel: "label", RoleSessionKey: "session key", RoleRequestKey: "request key",
	RoleUserKey: "user key", RoleTimeKey: "time key",
}

func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("role(%d)", uint8(r))
}

// A Feature is one entry of a table's schema. It is comparable.
type Feature struct {
	ID         FeatureID
	Name       string
	Generation uint32
	Type       vector.Type
	Role       Role
	// Logical is the Arrow type that an export restores where Type alone does not say it: "timestamp[us, tz=UTC]",
	// "date32", "decimal(10, 2)", "float16", "fixed_size_binary[16]", ... Empty: Type says all.
	Logical string
	Status  FeatureStatus
	// OriginColumn and OriginKey are set on features that came out of a map or struct column: export can fold them
	// back.
	OriginColumn, OriginKey string
}

// A FeatureStatus says what becomes of a feature. The numbers are written to disk.
type FeatureStatus uint8

const (
	FeatureActive FeatureStatus = 0
	// FeatureDeprecated: it is to go; readers and writers still have it.
	FeatureDeprecated FeatureStatus = 1
	// FeatureDropped: no reader sees it, and compaction leaves it out. A feature that is added under its name later has
	// another id.
	FeatureDropped FeatureStatus = 2
)

var StatusNames = [...]string{FeatureActive: "active", FeatureDeprecated: "deprecated", FeatureDropped: "dropped"}

func (s FeatureStatus) String() string {
	if int(s) < len(StatusNames) {
		return StatusNames[s]
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// MaxName bounds the strings of a Feature and of a Source, in bytes.
const MaxName = 4096

// Validate returns an error naming the feature and the first field that is wrong.
func (f Feature) Validate() error {
	if f.Name == "" || len(f.Name) > MaxName || !utf8.ValidString(f.Name) {
		return fmt.Errorf("feature name %.100q of %d bytes: want 1 to %d bytes of UTF-8", f.Name, len(f.Name), MaxName)
	}
	if f.ID == 0 {
		return fmt.Errorf("feature %s: id is 0; NewFeatureID makes one", f.Name)
	}
	if err := f.Type.Validate(); err != nil {
		return fmt.Errorf("feature %s: %w", f.Name, err)
	}
	if int(f.Role) >= len(roleNames) {
		return fmt.Errorf("feature %s: unknown %v", f.Name, f.Role)
	}
	if int(f.Status) >= len(StatusNames) {
		return fmt.Errorf("feature %s: unknown %v", f.Name, f.Status)
	}
	for _, s := range [...]string{f.Logical, f.OriginColumn, f.OriginKey} {
		if len(s) > MaxName {
			return fmt.Errorf("feature %s: logical type or origin of %d bytes: want at most %d", f.Name,
				len(s), MaxName)
		}
	}
	return nil
}

// AppendFeature appends the value of a schema entry; the name is its key.
//
//	id (8 LE) | generation | kind (1) | elem (1) | score (1) | dim | role (1) | logical | origin column | origin key |
//	status (1), which active features lack
func AppendFeature(dst []byte, f Feature) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(f.ID))
	dst = binary.AppendUvarint(dst, uint64(f.Generation))
	dst = append(dst, byte(f.Type.Kind), byte(f.Type.Elem), byte(f.Type.Score))
	dst = binary.AppendUvarint(dst, uint64(f.Type.Dim))
	dst = append(dst, byte(f.Role))
	dst = wire.AppendString(dst, f.Logical)
	dst = wire.AppendString(dst, f.OriginColumn)
	dst = wire.AppendString(dst, f.OriginKey)
	if f.Status != FeatureActive {
		dst = append(dst, byte(f.Status))
	}
	return dst
}

// DecodeFeature decodes what AppendFeature wrote; reason is empty when it is right.
func DecodeFeature(name string, b []byte) (f Feature, reason string) {
	d := wire.Decoder{Rest: b}
	f = Feature{Name: name, ID: FeatureID(d.U64()), Generation: uint32(d.Max(1<<32-1, "generation"))}
	f.Type = vector.Type{Kind: vector.Kind(d.Byte()), Elem: vector.Elem(d.Byte()), Score: vector.Elem(d.Byte())}
	f.Type.Dim = uint32(d.Max(vector.MaxDim, "dimension"))
	f.Role = Role(d.Byte())
	f.Logical, f.OriginColumn, f.OriginKey = d.String(), d.String(), d.String()
	if len(d.Rest) > 0 {
		if f.Status = FeatureStatus(d.Byte()); f.Status == FeatureActive {
			d.Fail("status of an active feature")
		}
	}
	d.End()
	if d.Reason != "" {
		return Feature{}, d.Reason
	}
	if err := f.Validate(); err != nil {
		return Feature{}, err.Error()
	}
	return f, ""
}

// IsKey reports whether a feature of the role is a key: of a session, a request, a user or a time.
func (r Role) IsKey() bool {
	return r == RoleSessionKey || r == RoleRequestKey || r == RoleUserKey || r == RoleTimeKey
}

// IDCollision says that two names have the same id.
func IDCollision(f FeatureID, a, b string) error {
	return fmt.Errorf("features %q and %q have the same id %016x: rename one", a, b, uint64(f))
}
