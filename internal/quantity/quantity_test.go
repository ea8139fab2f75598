package quantity

import "testing"

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 1536: "1.50 KiB", 99 << 20: "99.0 MiB", 1000 << 20: "1000 MiB",
		1023 << 20: "1023 MiB", 1 << 30: "1.00 GiB", 1 << 60: "1048576 TiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d bytes print as %q, want %q", n, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for want, got := range map[string]string{
		"1 row": Plural(1, "row"), "0 rows": Plural(0, "row"), "1,234,567 rows": Plural(1234567, "row"),
		"2 batches": Plural(2, "batch"), "2 epochs": Plural(2, "epoch"),
	} {
		if got != want {
			t.Errorf("printed as %q, want %q", got, want)
		}
	}
}
