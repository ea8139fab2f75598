package vector

// FirstOutOfRange returns the first place of vals whose value no e can have, or -1. e is an integer type or bool.
func (e Elem) FirstOutOfRange(vals []int64) int {
	bits, signed := elemBits(e)
	if bits == 0 || bits >= 63 {
		return -1
	}
	// Moved up by bias, the values of e are 0 to 2^width-1: one OR over all of them tells whether any is not.
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
