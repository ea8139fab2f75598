package names

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// Marker makes a root a store.
	Marker = "dsistore"

	TablesPrefix = "tables/"
	rootName     = "/table"
	begunName    = "/committed"
	SnapshotsDir = "/snapshots/"
	PinnedDir    = "/pinned/"
	LeasesDir    = "/leases/"
	UsageDir     = "/usage/"

	IndexFile   = "index.sst"
	keysFile    = "keys.sst"
	ListingFile = "listing.sst"
	SchemaFile  = "schema.sst"
	RowsFile    = "rows.roaring"
	ClockFile   = "clock" // put to read the store's clock, and deleted
	ProbeFile   = "probe" // put to find out whether the store keeps conditions, and deleted
	packPrefix  = "pack-"
	filePrefix  = "file-"
	// condemnedPrefix begins the name of the marker that a gc puts beside objects which it is about to remove: gc.go.
	CondemnedPrefix = "condemned-"

	// maxTableName bounds a table's name in bytes, so that it fits a file name when every byte is escaped.
	maxTableName = 80
)

// A tableID tells a table from every other, those of its name that were removed before it too: 8 random bytes, never
// all zero.
type TableID [8]byte

func NewTableID() TableID {
	var t TableID
	rand.Read(t[:])
	t[7] |= 1
	return t
}

func (t TableID) String() string { return hex.EncodeToString(t[:]) }

// An id names a segment, a run or a row bitmap: 8 random bytes, and the id of the table that it belongs to. So what an
// object is of is known from its name: a commit refuses what is another table's, and gc knows who may yet commit what
// it is about to remove.
type ID [16]byte

// newID returns a new id of the table.
func NewID(t TableID) ID {
	var i ID
	rand.Read(i[:8])
	copy(i[8:], t[:])
	return i
}

// table returns the table that what has the id belongs to.
func (i ID) Table() TableID { return TableID(i[8:]) }

// randomID returns an id that is of no table.
func RandomID() ID {
	var i ID
	rand.Read(i[:])
	i[15] |= 1 // the zero id is nobody's
	return i
}

func (i ID) String() string { return hex.EncodeToString(i[:]) }

// parseID parses 32 lower-case hex digits.
func ParseID(s string) (ID, error) {
	var i ID
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(i) || hex.EncodeToString(b) != s {
		return ID{}, fmt.Errorf("id %q: want 32 lower-case hex digits", s)
	}
	copy(i[:], b)
	if i == (ID{}) {
		return ID{}, fmt.Errorf("id %q: zero is reserved", s)
	}
	return i, nil
}

// dir is the prefix of a segment's or run's objects. It begins with random digits, so that an object store spreads
// them.
func (i ID) Dir() string { s := i.String(); return s[:2] + "/" + s + "/" }

func (i ID) ListingName() string { return i.Dir() + ListingFile }
func (i ID) SchemaName() string  { return i.Dir() + SchemaFile }
func (i ID) IndexName() string   { return i.Dir() + IndexFile }
func (i ID) KeysName() string    { return i.Dir() + keysFile }
func (i ID) RowsName() string    { return i.Dir() + RowsFile }

// An objectKind tells the data objects of a segment apart. The numbers are written to disk.
type ObjectKind uint8

const (
	PackObject ObjectKind = 1
	FileObject ObjectKind = 2
)

// maxObjectNumber bounds the number of a pack or file in a segment: six digits.
const MaxObjectNumber = 999_999

// objectName names pack or file n of a segment.
func (i ID) ObjectName(k ObjectKind, n uint64) string {
	word := packPrefix
	if k == FileObject {
		word = filePrefix
	}
	return i.Dir() + word + objectNumber(n)
}

func objectNumber(n uint64) string { return fmt.Sprintf("%06d", n) }

// isPack reports whether name is one of the segment's packs.
func (i ID) IsPack(name string) bool { return strings.HasPrefix(name, i.Dir()+packPrefix) }

// ParseDataName returns the id in the name of a segment's or run's object. It accepts no name that nothing in this file
// makes.
func ParseDataName(name string) (ID, bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return ID{}, false
	}
	i, err := ParseID(parts[1])
	return i, err == nil && parts[0] == parts[1][:2] && isDataFile(parts[2])
}

// IsSegmentObject reports whether a name is that of an object of a segment or run, which never changes, and whose name
// no other object ever has.
func IsSegmentObject(name string) bool {
	if _, ok := ParseDataName(name); !ok {
		return false
	}
	last := name[strings.LastIndexByte(name, '/')+1:]
	return last != ClockFile && last != ProbeFile && !strings.HasPrefix(last, CondemnedPrefix)
}

// IsRun reports whether name is that of a run of a listing or a schema.
func IsRun(name string) bool {
	id, ok := ParseDataName(name)
	return ok && (name == id.ListingName() || name == id.SchemaName())
}

// IsProbe reports whether a name is that of an object which a probe makes and deletes.
func IsProbe(name string) bool {
	id, ok := ParseDataName(name)
	return ok && name == id.Dir()+ProbeFile
}

// isDataFile reports whether a segment or run may have an object whose name ends in s.
func isDataFile(s string) bool {
	switch s {
	case IndexFile, keysFile, ListingFile, SchemaFile, RowsFile, ClockFile, ProbeFile:
		return true
	}
	if marker, ok := strings.CutPrefix(s, CondemnedPrefix); ok {
		_, err := ParseID(marker)
		return err == nil
	}
	number, ok := strings.CutPrefix(s, packPrefix)
	if !ok {
		number, ok = strings.CutPrefix(s, filePrefix)
	}
	n, err := strconv.ParseUint(number, 10, 64)
	return ok && err == nil && n <= MaxObjectNumber && number == objectNumber(n)
}

// ValidateTable returns an error, which matches ErrName, when name cannot be a table's: 1 to 80 bytes of UTF-8 that
// commands and people read as one name. Overlays, sample lists and branches follow the same rules.
func ValidateTable(name string) error { return CheckTyped("table", name, maxTableName) }

// ErrName is matched when a name cannot be that of a table, an overlay, a sample list or a branch; the message says
// why.
var ErrName = errors.New("bad name")

// separators have a meaning where names are typed.
var separators = map[rune]string{',': "the names of a list",
	'@': "a table and a branch, as in TABLE@BRANCH, which commands that read rows take"}

// checkTyped returns an error when name would be read as something else where people type it, or shown as something
// else where they read it. what says whose name it is.
func CheckTyped(what, name string, maxBytes int) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s %.100q: %w: %s", what, name, ErrName, fmt.Sprintf(format, args...))
	}
	switch {
	case name == "" || len(name) > maxBytes:
		return bad("it is of %d bytes: want 1 to %d", len(name), maxBytes)
	case !utf8.ValidString(name):
		return bad("it is not UTF-8")
	case name[0] == '-':
		return bad("it begins with -, as options do")
	}
	for _, c := range name {
		if why, ok := separators[c]; ok {
			return bad("%q stands between %s", string(c), why)
		}
		if unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return bad("%U cannot be seen", c)
		}
	}
	if strings.TrimSpace(name) != name {
		return bad("it begins or ends with a space")
	}
	return nil
}

func TableDir(table string) string { return TablesPrefix + escape(table) }

// tableRoot names the object that holds the table's id.
func TableRoot(table string) string { return TableDir(table) + rootName }

// tableBegun names the object that says that the table had a commit: without it a table without snapshots is none yet,
// with it they are lost.
func TableBegun(table string) string { return TableDir(table) + begunName }

// maxSnapshot bounds the number of a snapshot, so that its complement has ten digits.
const MaxSnapshot = 9_999_999_999

// snapshotName names snapshot number of a table. Names sort newest first, so that one small listing finds the newest:
// the digits are the number's complement to maxSnapshot, which is followed, for people, by the number itself. A hundred
// share a directory, so that no directory of a local store that is listed is large.
//
//	tables/ads/snapshots/99999999/9999999996.3
func SnapshotName(table string, number uint64) string {
	c := uint64(MaxSnapshot) - number
	return fmt.Sprintf("%s%s%08d/%010d.%d", TableDir(table), SnapshotsDir, c/100, c, number)
}

// pinnedName names the copy of an expired snapshot that a branch or a lease keeps.
func PinnedName(table string, number uint64) string {
	return TableDir(table) + PinnedDir + strconv.FormatUint(number, 10)
}

// condemnedName names the marker of one gc beside the objects of an id.
func (i ID) CondemnedName(gc ID) string { return i.Dir() + CondemnedPrefix + gc.String() }

// isCondemned reports whether name is a marker of a gc.
func (i ID) IsCondemned(name string) bool { return strings.HasPrefix(name, i.Dir()+CondemnedPrefix) }

// parseSnapshot returns the number in the name of a snapshot of the table.
func ParseSnapshot(table, name string) (uint64, bool) {
	n, err := strconv.ParseUint(name[strings.LastIndexByte(name, '.')+1:], 10, 64)
	return n, err == nil && n > 0 && n <= MaxSnapshot && name == SnapshotName(table, n)
}

// parsePinned returns the number in the name of a copy of a snapshot of the table.
func ParsePinned(table, name string) (uint64, bool) {
	n, err := strconv.ParseUint(strings.TrimPrefix(name, TableDir(table)+PinnedDir), 10, 64)
	return n, err == nil && n > 0 && name == PinnedName(table, n)
}

// parseTable returns the table that an object under tables/ belongs to, and the name after which the next table's sort.
func ParseTable(name string) (table, next string, ok bool) {
	rest, ok := strings.CutPrefix(name, TablesPrefix)
	part, _, found := strings.Cut(rest, "/")
	if !ok || !found {
		return "", "", false
	}
	table, ok = unescape(part)
	return table, TablesPrefix + part + "0", ok // "0" is the byte after "/"
}

// escape returns name as a component of an object name: letters, digits, "-", "_" and inner dots as they are, all other
// bytes as %XX.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if isPlain(c) && (c != '.' || i > 0) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

// unescape undoes escape, and refuses what escape does not make.
func unescape(s string) (string, bool) {
	out := UnescapePercent(s)
	return out, out != "" && escape(out) == s
}

// unescapePercent replaces %XX by the byte; other text, and a % that no two hex digits follow, stays.
func UnescapePercent(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(v))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}
