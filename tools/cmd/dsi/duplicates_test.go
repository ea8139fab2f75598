package main

import "testing"

// TestDuplicatesText: what is said of duplicates goes together: values that are used many times do not save "0 B", and what was not found is not
// counted.
func TestDuplicatesText(t *testing.T) {
	for _, tc := range []struct {
		d    duplicates
		want string
	}{
		{duplicates{factor: 1, slots: 400, rowSlots: 400}, "none: each value is used once"},
		{duplicates{factor: 14.34, slots: 28, rowSlots: 400}, "each stored value is used 14.34 times; 28 of 400 slots, which saves decoding: the encodings alone would be as small"},
		{duplicates{factor: 10.781, slots: 2_261_140, rowSlots: 8_350_000, partial: 117_543, groups: 60, grouped: 325, saved: 5 << 20},
			"each stored value is used 10.78 times; 2,261,140 of 8,350,000 slots, 117,543 partial duplicates, 60 groups of 325 features, about 5.00 MiB saved"},
		{duplicates{factor: 2, partial: 1, groups: 1, grouped: 2, saved: 100}, "each stored value is used 2.00 times; 1 partial duplicate, 1 group of 2 features, about 100 B saved"},
		{duplicates{factor: 1, rowSlots: 5, slots: 4, saved: 9}, "each stored value is used 1.00 times; 4 of 5 slots, about 9 B saved"},
	} {
		if got := tc.d.text(); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}
