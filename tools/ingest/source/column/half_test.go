package column

import (
	"math"
	"testing"
)

// Every half has the value that the definition gives it.
func TestHalfValue(t *testing.T) {
	for h := range 1 << 15 {
		want := math.Ldexp(1024+float64(h&0x3ff), h>>10-25)
		switch {
		case h>>10 == 0:
			want = math.Ldexp(float64(h), -24)
		case h == 0x7c00:
			want = math.Inf(1)
		case h > 0x7c00:
			want = math.NaN()
		}
		got, negative := float64(HalfValue(uint16(h))), float64(HalfValue(uint16(h)|0x8000))
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("%04x is %v, want %v", h, got, want)
		}
		if negative != -want && !math.IsNaN(want) || math.Signbit(got) || !math.Signbit(negative) {
			t.Fatalf("%04x is %v, and %v with a sign", h, got, negative)
		}
	}
}
