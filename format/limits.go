package format

import (
	"math"

	"github.com/dsistore/dsistore/format/vector"
)

// Limits are the largest counts that stored metadata may have. They protect against large allocations for damaged or
// untrusted bytes. The zero value works.
type Limits struct {
	StripeRows  uint64 // rows, and slots, of a stripe; default MaxStripeRows, at most 1<<31-1
	StripeBytes uint64 // decoded bytes of a stripe, and half of its stored bytes; default 1 GiB
	FileStripes uint64 // stripes of a file; default 1<<17
	// DictionaryValues is for the values of a file's dictionary; default 1<<20.
	DictionaryValues uint64
	DirectoryBytes   uint64 // bytes of the directory of a file or pack; default 64 MiB
}

const (
	// MaxStripeRows is the largest number of rows of a stripe.
	MaxStripeRows = 1 << 24
	// MaxFileStripes is the largest number of stripes of a file.
	MaxFileStripes = 1 << 17
)

const (
	defaultStripeBytes    = 1 << 30
	defaultDirectoryBytes = 64 << 20
	defaultDictionary     = 1 << 20

	maxNameBytes    = 1<<16 - 1
	maxRowElements  = 1 << 48
	maxStreamLength = 1 << 48
	storedSlack     = 1 << 20 // a stripe may take so many bytes besides 2*StripeBytes, a dictionary besides its values
)

func (l Limits) withDefaults() Limits {
	if l.StripeRows == 0 {
		l.StripeRows = MaxStripeRows
	}
	l.StripeRows = min(l.StripeRows, math.MaxInt32)
	if l.StripeBytes == 0 {
		l.StripeBytes = defaultStripeBytes
	}
	if l.FileStripes == 0 {
		l.FileStripes = MaxFileStripes
	}
	if l.DictionaryValues == 0 {
		l.DictionaryValues = defaultDictionary
	}
	l.DictionaryValues = min(l.DictionaryValues, math.MaxInt32)
	if l.DirectoryBytes == 0 {
		l.DirectoryBytes = defaultDirectoryBytes
	}
	return l
}

// decodedBytes returns the memory of a column of the stripe, or false if a count exceeds what a column can hold. Rows
// and Slots fit an int32.
func decodedBytes(t vector.Type, s *StripeMeta) (uint64, bool) {
	n := uint64(0)
	if s.Slots != s.Rows || s.has(InverseCodes) || s.has(InverseRuns) || s.has(InverseChanges) {
		n += 4 * uint64(s.Rows)
	}
	if s.Present != s.Slots {
		n += 8 * uint64(vector.BitmapWords(int(s.Slots)))
	}
	held := s.Elements
	switch {
	case t.Kind == vector.Inverse:
		return n, held == 0
	case t.IsList():
		n += 4 * (uint64(s.Slots) + 1)
		if s.has(Starts) {
			n += 4 * uint64(s.Slots)
		}
	default:
		held = uint64(s.Slots) * uint64(t.Width())
	}
	if held > vector.MaxElements {
		return 0, false
	}
	return n + held*uint64(t.ValueBytes()), true
}

// sourceBytes returns the bytes of one value of t with its score in the source.
func sourceBytes(t vector.Type) uint64 {
	if t.Kind == vector.Bytes || t.Kind == vector.String {
		return 1
	}
	return elemBytes(t.Elem) + elemBytes(t.Score)
}

func elemBytes(e vector.Elem) uint64 {
	switch e {
	case vector.Bool, vector.Int8, vector.Uint8:
		return 1
	case vector.Int16, vector.Uint16:
		return 2
	case vector.Int32, vector.Uint32, vector.Float32:
		return 4
	case vector.Int64, vector.Uint64, vector.Float64:
		return 8
	}
	return 0
}
