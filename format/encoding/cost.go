package encoding

// A Profile says what the chooser weighs: the time to fetch a byte against the time to decode a value.
type Profile uint8

// The profiles.
const (
	// Balanced suits tables read over a network or from disks that many readers share.
	Balanced Profile = 0
	// Speed suits tables that stay in memory or on local flash.
	Speed Profile = 1
	// Size suits tables that are kept and seldom read.
	Size Profile = 2
)

// nsPerByte is what a stored byte counts for: Speed as if bytes came at 2 GB/s, Balanced at 125 MB/s, Size at 8 MB/s, for
// each core that decodes.
func (p Profile) nsPerByte() float64 {
	switch p {
	case Speed:
		return 0.5
	case Size:
		return 125
	}
	return 8
}

// zstdMargin is the part of the size that zstd must take off before it is used.
const zstdMargin = 0.10

// topByteMargin is the same for the entropy coding of top bytes.
const topByteMargin = 0.03

// Decode costs in ns a value, from BenchmarkDecode on a 2.6 GHz Xeon (plain Go), rounded. Costs are ratios to each other:
// a machine twice as fast chooses the same. Those of nested chunks come on top.
const (
	nsConstant   = 0.3
	nsPlain      = 0.5
	nsFOR        = 0.6
	nsDelta      = 0.5
	nsPatch      = 3.0 // an exception
	nsLookUp     = 1.2
	nsLookUpFar  = 3.0 // with a dictionary beyond the second-level cache
	nsRunFill    = 0.4
	nsRun        = 4.0 // a run
	nsZstdByte   = 1.5 // a byte that comes out
	nsSplit      = 1.5
	nsTopByte    = 0.5
	nsCopy       = 0.3
	nsStep       = 6.0 // a step of repeats
	nsDecimal    = 1.0
	nsStringByte = 0.1
	nsStringCopy = 5.0 // a string
)

// score is the time that fetching and decoding takes: lower is better.
func (p Profile) score(bytes, ns float64) float64 { return bytes*p.nsPerByte() + ns }
