package storage

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// This file makes and parses every object name of a store. doc.go lists them.

const (
	tablesPrefix = "tables/"
	snapshotsDir = "/snapshots/"
	newestDir    = "/newest/"
	pinnedDir    = "/pinned/"
	leasesDir    = "/leases/"
	accessDir    = "/access/"

	indexFile   = "index.sst"
	listingFile = "listing.sst"
	schemaFile  = "schema.sst"
	rowsFile    = "rows.roaring"
	clockFile   = "clock" // put to read the store's clock, and deleted
	packPrefix  = "pack-"
	filePrefix  = "file-"

	// newestEvery: a hint for each snapshot whose number is 1 more than a multiple of it.
	newestEvery = 64

	// maxTableName bounds a table's name in bytes, so that it fits a file name when every byte is escaped.
	maxTableName = 80
)

// An id names a segment or a run: 16 random bytes, never all zero.
type id [16]byte

func newID() id {
	var i id
	rand.Read(i[:])
	i[15] |= 1 // the zero id is the index database's own
	return i
}

func (i id) String() string { return hex.EncodeToString(i[:]) }

// parseID parses 32 lower-case hex digits.
func parseID(s string) (id, error) {
	var i id
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(i) || hex.EncodeToString(b) != s {
		return id{}, fmt.Errorf("id %q: want 32 lower-case hex digits", s)
	}
	copy(i[:], b)
	if i == (id{}) {
		return id{}, fmt.Errorf("id %q: zero is reserved", s)
	}
	return i, nil
}

// dir is the prefix of a segment's or run's objects. It begins with random digits, so that an object store spreads them.
func (i id) dir() string { s := i.String(); return s[:2] + "/" + s + "/" }

func (i id) indexName() string         { return i.dir() + indexFile }
func (i id) rowsName() string          { return i.dir() + rowsFile }
func (i id) runName(k treeKind) string { return i.dir() + k.file() }

// An objectKind tells the data objects of a segment apart. The numbers are written to disk.
type objectKind uint8

const (
	packObject objectKind = 1
	fileObject objectKind = 2
)

// maxObjectNumber bounds the number of a pack or file in a segment: six digits.
const maxObjectNumber = 999_999

// objectName names pack or file n of a segment.
func (i id) objectName(k objectKind, n uint64) string {
	word := packPrefix
	if k == fileObject {
		word = filePrefix
	}
	return i.dir() + word + objectNumber(n)
}

func objectNumber(n uint64) string { return fmt.Sprintf("%06d", n) }

// isPack reports whether name is one of the segment's packs.
func (i id) isPack(name string) bool { return strings.HasPrefix(name, i.dir()+packPrefix) }

// parseDataName returns the id in the name of a segment's or run's object. It accepts no name that nothing in this file
// makes.
func parseDataName(name string) (id, bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return id{}, false
	}
	i, err := parseID(parts[1])
	return i, err == nil && parts[0] == parts[1][:2] && isDataFile(parts[2])
}

// isDataFile reports whether a segment or run may have an object whose name ends in s.
func isDataFile(s string) bool {
	switch s {
	case indexFile, listingFile, schemaFile, rowsFile, clockFile:
		return true
	}
	number, ok := strings.CutPrefix(s, packPrefix)
	if !ok {
		number, ok = strings.CutPrefix(s, filePrefix)
	}
	n, err := strconv.ParseUint(number, 10, 64)
	return ok && err == nil && n <= maxObjectNumber && number == objectNumber(n)
}

// ValidateTable returns an error when name cannot be a table's: 1 to 80 bytes.
func ValidateTable(name string) error {
	if name == "" || len(name) > maxTableName {
		return fmt.Errorf("table name %.100q of %d bytes: want 1 to %d", name, len(name), maxTableName)
	}
	return nil
}

func tableDir(table string) string { return tablesPrefix + escape(table) }

func snapshotName(table string, number uint64) string {
	return tableDir(table) + snapshotsDir + fmt.Sprintf("%020d", number)
}

// pinnedName names the copy of an expired snapshot that a branch or a lease keeps.
func pinnedName(table string, number uint64) string {
	return tableDir(table) + pinnedDir + fmt.Sprintf("%020d", number)
}

func leaseName(table string, lease id) string { return tableDir(table) + leasesDir + lease.String() }

// AccessPrefix is what the names of the table's access records begin with. Package access makes the rest.
func (t *Table) AccessPrefix() string { return tableDir(t.name) + accessDir }

func newestName(table string, number uint64) string {
	return tableDir(table) + newestDir + fmt.Sprintf("%020d", math.MaxUint64-number)
}

func newestPrefix(table string) string { return tableDir(table) + newestDir }

// parseNewest returns the number of the snapshot that a hint stands for.
func parseNewest(name string) (uint64, bool) {
	s := name[strings.LastIndexByte(name, '/')+1:]
	n, err := strconv.ParseUint(s, 10, 64)
	return math.MaxUint64 - n, err == nil && len(s) == 20
}

// parseSnapshot returns the number in the name of a snapshot.
func parseSnapshot(name string) (uint64, bool) {
	s := name[strings.LastIndexByte(name, '/')+1:]
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && len(s) == 20 && n > 0
}

// parseTable returns the table that an object under tables/ belongs to, and the name after which the next table's sort.
func parseTable(name string) (table, next string, ok bool) {
	rest, ok := strings.CutPrefix(name, tablesPrefix)
	part, _, found := strings.Cut(rest, "/")
	if !ok || !found {
		return "", "", false
	}
	table, ok = unescape(part)
	return table, tablesPrefix + part + "0", ok // "0" is the byte after "/"
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
	out := unescapePercent(s)
	return out, out != "" && escape(out) == s
}

// unescapePercent replaces %XX by the byte; other text, and a % that no two hex digits follow, stays.
func unescapePercent(s string) string {
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
