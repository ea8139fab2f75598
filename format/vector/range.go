package vector

// FirstOutOfRange returns the index of the first of vals that is out of the range of e, or -1. e is an integer type or
// bool.
func (e Elem) FirstOutOfRange(vals []int64) int {
	bits, signed := elemBits(e)
	if bits == 0 || bits >= 63 {
		return -1
	}
	// With bias added, the values of e are 0 to 2^width-1. The OR of all of them shows whether any is out of range.
	width, bias := uint(bits), int64(0)
	if signed {
		width, bias = width+1, 1<<bits
	}
	all := uint64(0)
	for _, v := range vals {
		all |= uint64(v + bias)
	}
	if all>>width == 0 {
		return -1
	}
	for i, v := range vals {
		if uint64(v+bias)>>width != 0 {
			return i
		}
	}
	return -1
}
