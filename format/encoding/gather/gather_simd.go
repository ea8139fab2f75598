//go:build amd64 && !purego

package gather

import "github.com/dsistore/dsistore/internal/simd"

// twoAVX512 is twoFallback for the first codes; it returns for how many.
//
//go:noescape
func twoAVX512(dst, codes *int64, n int, first *int64, firstLen int, second *int64, secondLen int) (done int)

// Two is twoFallback.
func Two(dst, first, second, codes []int64) (bad int) {
	done := 0
	if simd.AVX512 && len(codes) >= 8 {
		dst = dst[:len(codes)]
		done = twoAVX512(&dst[0], &codes[0], len(codes), base(first), len(first), base(second), len(second))
	}
	if bad = twoFallback(dst[done:], first, second, codes[done:]); bad >= 0 {
		bad += done
	}
	return bad
}

// base returns the address of the first value, nil where there is none.
func base(s []int64) *int64 {
	if len(s) == 0 {
		return nil
	}
	return &s[0]
}
