// Package gather looks codes up in dictionaries, with a kernel for AVX-512 and a fallback in plain Go.
package gather

// twoFallback writes the value of each code: first[c], or second[c-len(first)] from len(first) on. codes and dst may
// be the same memory. It returns the place of the first code that is past both, or -1; what is before it has been
// written, and perhaps more. Hot: Two replaces it where the processor has vectors.
func twoFallback(dst, first, second, codes []int64) (bad int) {
	dst = dst[:len(codes)]
	for i, c := range codes {
		if uint64(c) < uint64(len(first)) {
			dst[i] = first[c]
			continue
		}
		if c -= int64(len(first)); uint64(c) >= uint64(len(second)) {
			return i
		}
		dst[i] = second[c]
	}
	return -1
}
