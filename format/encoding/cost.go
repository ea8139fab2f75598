package encoding

// A Profile says what the chooser weighs: the time to fetch a byte against the time to decode a value. It is the ns of decoding that
// a stored byte counts for; the zero Profile is Balanced.
type Profile float64

// The profiles. A byte counts for as long as it takes to come, for each core that decodes.
const (
	// Speed, as if at 2 GB/s, suits tables that stay in memory or on local flash.
	Speed Profile = 0.5
	// Balanced, as if at 125 MB/s, suits tables read over a network or from disks that many readers share.
	Balanced Profile = 0
	// Size, as if at 8 MB/s, suits tables that are kept and seldom read.
	Size Profile = 125

	balancedNs = 8
	// hardNs: from here on bytes count for so much that zstd is given more time.
	hardNs = 64
)

// NsPerByte is what a stored byte counts for.
func (p Profile) NsPerByte() float64 {
	if p == Balanced {
		return balancedNs
	}
	return float64(p)
}

// zstdMargin is the part of the size that zstd must take off before it is used.
const zstdMargin = 0.10

// Decode costs in ns, from BenchmarkDecode on two busy cores of a 2.6 GHz Xeon (plain Go), rounded. What counts is their
// ratio: a machine twice as fast would choose nearly the same. Costs of nested chunks come on top.
const (
	nsPlain      = 0.5 // a value, here and below unless said
	nsFOR        = 0.5
	nsDelta      = 0.5
	nsPatch      = 3.0 // an exception
	nsRunFill    = 0.3
	nsRun        = 8.0 // a run
	nsRANS       = 1.5 // with AVX2: less than half of it with AVX-512, five times as much in plain Go
	nsCopy       = 0.2 // a value that repeats copies
	nsStep       = 8.0 // a step of repeats
	nsZstdByte   = 1.2 // a byte that comes out
	nsSplitByte  = 0.4 // a byte of a value
	nsDecimal    = 0.5
	nsStringByte = 0.1 // a byte
	nsStringCopy = 8.0 // a string from a dictionary
)

// lookUpCost returns what looking a code up among k values costs: they lie in the first, the second or no cache.
func lookUpCost(k int) float64 {
	switch {
	case k <= 1<<12:
		return 0.6
	case k <= 1<<18:
		return 1.5
	}
	return 4
}

// score is the time that fetching and decoding takes: lower is better.
func (p Profile) score(bytes, ns float64) float64 { return bytes*p.NsPerByte() + ns }
