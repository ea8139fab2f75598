package describe

import "testing"

// TestDuplicatesText: what is said of duplicates goes together: values that are used many times do not save "0 B", and
// what was not found is not counted.
func TestDuplicatesText(t *testing.T) {
	for _, tc := range []struct {
		d    Duplicates
		want string
	}{
		{Duplicates{Factor: 1, Slots: 400, RowSlots: 400}, "none: each value is used once"},
		{Duplicates{Factor: 14.34, Slots: 28, RowSlots: 400},
			"each stored value is used 14.34 times; 28 of 400 slots; without, about as much would be stored, " +
				"encoded: they save decoding"},
		{Duplicates{Factor: 10.781, Slots: 2_261_140, RowSlots: 8_350_000, Partial: 117_543, Groups: 60, Grouped: 325,
			SavedBytes: 5 << 20},
			"each stored value is used 10.78 times; 2,261,140 of 8,350,000 slots, " +
				"117,543 partial duplicates, 60 groups of 325 features; without, about 5.00 MiB more would be " +
				"stored, encoded"},
		{Duplicates{Factor: 2, Partial: 1, Groups: 1, Grouped: 2, SavedBytes: 100},
			"each stored value is used 2.00 times; 1 partial duplicate, 1 group of 2 features; without, about 100 B " +
				"more would be stored, encoded"},
		{Duplicates{Factor: 1, RowSlots: 5, Slots: 4, SavedBytes: 9},
			"each stored value is used 1.00 times; 4 of 5 slots; without, about 9 B more would be stored, encoded"},
		{Duplicates{Factor: 2, SavedBytes: 9},
			"each stored value is used 2.00 times; without, about 9 B more would be stored, encoded"},
	} {
		if got := tc.d.String(); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}
