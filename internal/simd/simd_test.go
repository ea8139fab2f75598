package simd

import "testing"

func TestLevel(t *testing.T) {
	for _, c := range []struct {
		env          string
		avx2, avx512 bool
		want2, want5 bool
	}{
		{"", true, true, true, true}, {"", true, false, true, false}, {"", false, true, false, false},
		{"avx2", true, true, true, false}, {"avx2", false, true, false, false},
		{"off", true, true, false, false}, {"on", true, true, true, true},
	} {
		if a, b := level(c.env, c.avx2, c.avx512); a != c.want2 || b != c.want5 {
			t.Errorf("%q with AVX2 %v, AVX-512 %v: %v, %v", c.env, c.avx2, c.avx512, a, b)
		}
	}
}
