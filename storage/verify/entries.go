package verify

import (
	"fmt"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/wire"
)

// An entryCheck checks the entries of one space of a tree. To add a space, add its check to entryChecks.
type entryCheck struct {
	key   func(key []byte) bool
	value func(place string, key, value []byte) (reason string) // not called where the entry removes its key
}

const malformed = "is malformed"

var entryChecks = map[lsm.Kind]map[byte]entryCheck{
	lsm.Listing: {
		catalog.PartitionSpace: {isSegmentKey, func(_ string, key, value []byte) string {
			_, _, reason := catalog.ParseSegment(key, value)
			return reason
		}},
		catalog.SegmentSpace: {isID, func(_ string, _, value []byte) string {
			return malformedUnless(isSegmentKey(append([]byte{catalog.PartitionSpace}, value...)))
		}},
		catalog.SourceSpace: {anyKey, func(_ string, _, value []byte) string {
			_, _, ok := catalog.ParseSource(value)
			return malformedUnless(ok)
		}},
		catalog.DeletesSpace: {isID, checkBitmap},
		catalog.OverlaySegmentSpace: {func(key []byte) bool {
			return len(key) == 5+16 && isSegmentOf(key, key[:5])
		}, func(place string, key, value []byte) string {
			_, reason := catalog.ParseOverlaySegment(key, value, place)
			return reason
		}},
		catalog.ListRowsSpace: {func(key []byte) bool {
			_, _, ok := parseListRowsKey(key)
			return ok
		}, checkBitmap},
		catalog.OverlaySpace: {isName, checkNamed(catalog.DecodeOverlay)},
		catalog.ListSpace:    {isName, checkNamed(catalog.DecodeList)},
		catalog.BranchSpace:  {isName, checkNamed(catalog.DecodeBranch)},
		catalog.RepairedSpace: {catalog.IsRepairedKey, func(_ string, key, value []byte) string {
			_, reason := catalog.ParseRepaired(key, value)
			return reason
		}},
	},
	lsm.Schema: {
		catalog.NameSpace:      {anyKey, checkNamed(catalog.DecodeFeature)},
		catalog.FeatureIDSpace: {func(key []byte) bool { return len(key) == 9 }, anyValue},
		catalog.KeyFeaturesSpace: {func(key []byte) bool {
			return len(key) == 1
		}, func(_ string, _, value []byte) string {
			_, reason := catalog.DecodeKeyFeatures(value)
			return reason
		}},
		catalog.PropertySpace: {anyKey, func(_ string, key, value []byte) string {
			return malformedUnless(catalog.CheckProperty(string(key[1:]), string(value)) == nil)
		}},
	},
}

func anyKey([]byte) bool                     { return true }
func anyValue(string, []byte, []byte) string { return "" }
func isID(key []byte) bool                   { return isSegmentOf(key, key[:1]) }
func isName(key []byte) bool                 { return catalog.CheckName("entry", string(key[1:])) == nil }
func isSegmentKey(key []byte) bool           { _, _, ok := catalog.ParseSegmentKey(key); return ok }
func isSegmentOf(key, prefix []byte) bool    { _, ok := catalog.SegmentOf(key, prefix); return ok }

func malformedUnless(ok bool) string {
	if ok {
		return ""
	}
	return malformed
}

func checkBitmap(place string, _, value []byte) string {
	_, reason := bitmap.DecodeEntry(value, bitmap.MaxRows, place)
	return reason
}

func checkNamed[T any](decode func(name string, value []byte) (T, string)) func(string, []byte, []byte) string {
	return func(_ string, key, value []byte) string {
		_, reason := decode(string(key[1:]), value)
		return reason
	}
}

// CheckEntry checks one entry of a tree of an object. value is nil where the entry removes its key. An entry of a space
// that there is not is a later version's, as checksums hold, and no damage: readers leave it alone, and a repair must.
func CheckEntry(object string, kind lsm.Kind, key, value []byte) error {
	if len(key) > 0 {
		if _, ok := entryChecks[kind][key[0]]; !ok {
			return &format.UnsupportedError{Object: object, Stripe: -1, Offset: -1,
				Reason: fmt.Sprintf("entry %.40q is of a kind that this program does not know", key)}
		}
	}
	if reason := checkEntry(object, kind, key, value); reason != "" {
		return wire.Corrupt(object, fmt.Sprintf("entry %.40q: %s", key, reason))
	}
	return nil
}

// checkEntry says what is wrong with an entry.
func checkEntry(place string, kind lsm.Kind, key, value []byte) (reason string) {
	if len(key) == 0 {
		return "empty key"
	}
	c, ok := entryChecks[kind][key[0]]
	if !ok || !c.key(key) {
		return malformed
	}
	if value == nil {
		return ""
	}
	return c.value(place, key, value)
}

// parseListRowsKey takes an 'L' key apart.
func parseListRowsKey(key []byte) (list string, segment names.ID, ok bool) {
	at := len(key) - 17 // the NUL
	if at < 1 || key[0] != catalog.ListRowsSpace || key[at] != 0 || catalog.CheckName("sample list",
		string(key[1:at])) != nil {
		return "", names.ID{}, false
	}
	segment, ok = catalog.SegmentOf(key, key[:at+1])
	return string(key[1:at]), segment, ok
}
