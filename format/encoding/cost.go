package encoding

// A Profile says what the chooser weighs: the time to fetch a byte against the time to decode a value. It is the ns of
// decoding that a stored byte counts for; the zero Profile is Balanced.
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

// Decode costs stand with each codec as ns constants: from BenchmarkDecode on two busy cores of a 2.6 GHz Xeon (plain
// Go), rounded. What counts is their ratio: a machine twice as fast would choose nearly the same. Costs of nested
// chunks come on top.

// score is the time that fetching and decoding takes: lower is better.
func (p Profile) score(bytes, ns float64) float64 { return bytes*p.NsPerByte() + ns }
