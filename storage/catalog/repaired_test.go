package catalog

import (
	"encoding/hex"
	"strings"
	"testing"
)

// TestRepairedBytes: the bytes of an entry of a repair never change.
func TestRepairedBytes(t *testing.T) {
	id := strings.Repeat("0a", 16)
	for want, r := range map[string]Repaired{
		id + "0000" + "ac02" + "03" + "616263":            {Snapshot: 7, Index: 1, ID: id, Rows: 300, What: "abc"},
		strings.Repeat("00", 16) + "0509" + "00" + "0178": {Snapshot: 7, Index: 1, First: 5, Last: 9, What: "x"},
	} {
		key, value := RepairedKey(r.Snapshot, r.Index), AppendRepaired(nil, r)
		if got := hex.EncodeToString(value); got != want || hex.EncodeToString(key) != "71000000000000000700000001" {
			t.Errorf("%x: %s, want %s", key, got, want)
		}
		if got, reason := ParseRepaired(key, value); reason != "" || got != r {
			t.Errorf("%+v, want %+v: %s", got, r, reason)
		}
		for n := range value {
			if got, reason := ParseRepaired(key, value[:n]); reason == "" {
				t.Errorf("cut to %d bytes: %+v", n, got)
			}
		}
		if got, reason := ParseRepaired(key[1:], value); reason == "" {
			t.Errorf("with another key: %+v", got)
		}
	}
	for _, bad := range []Repaired{{}, {What: strings.Repeat("x", MaxRepairedText+1)}, {What: "x", ID: "y"},
		{What: "x", First: 3, Last: 2}, {What: "x", Last: 2}} {
		if err := bad.Validate(); err == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}
