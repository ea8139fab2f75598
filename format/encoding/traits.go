package encoding

import "math"

// traits are what a glance at floats tells. Codecs whose size does not depend on the values (plain, byte planes left
// raw) are remembered with nothing to drift: without the traits, noise that turns into prices would stay plain for as
// long as the memory lasts.
type traits struct {
	distinct int16 // of traitSample values
	decimals int16 // of traitSample values that a few places say exactly
}

const (
	traitSample = 256 // values: not more than rememberFrom
	traitBlock  = 16  // of them next to each other, so that runs show
	traitChange = traitSample / 8
)

// turned reports whether values of traits t are of another kind than those of traits was.
func (t traits) turned(was traits) bool {
	apart := func(a, b int16) bool { return max(a, b)-min(a, b) > traitChange }
	return apart(t.distinct, was.distinct) || apart(t.decimals, was.decimals)
}

// floatTraits looks at traitSample of at least as many values, given by their bits.
func floatTraits(raw []int64, width int) traits {
	var t traits
	var table [4 * traitSample]int64 // open addressing; the key zero is counted apart
	zero := false
	const blocks = traitSample / traitBlock
	for i := range blocks {
		from := i * (len(raw) - traitBlock) / (blocks - 1)
		for _, v := range raw[from : from+traitBlock] {
			if isDecimal(v, width) {
				t.decimals++
			}
			if v == 0 {
				zero = true
				continue
			}
			at := hash(uint64(v)) >> 54
			for table[at] != 0 && table[at] != v {
				at = (at + 1) % uint64(len(table))
			}
			if table[at] == 0 {
				table[at] = v
				t.distinct++
			}
		}
	}
	if zero {
		t.distinct++
	}
	return t
}

// isDecimal reports whether a double has at most six decimal places, a float at most three.
func isDecimal(raw int64, width int) bool {
	if width == 4 {
		v := math.Float32frombits(uint32(raw))
		return float32(math.RoundToEven(float64(v)*1e3)/1e3) == v
	}
	v := math.Float64frombits(uint64(raw))
	return math.RoundToEven(v*1e6)/1e6 == v
}
