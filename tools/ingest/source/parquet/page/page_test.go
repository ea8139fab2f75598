package page

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// TestPackedLevels reads the levels 1, 0, 0, 1, 1, 0, 1, 1 and 0 in the two orders of bits.
func TestPackedLevels(t *testing.T) {
	want := []int16{1, 0, 0, 1, 1, 0, 1, 1, 0}
	for low, page := range map[bool][]byte{false: {0b10011011, 0b00000000, 9}, true: {0b11011001, 0b00000000, 9}} {
		c, end, err := levelCursor(page, 0, len(want), 1, encodingBitPacked, -1, low)
		if err != nil || end != 2 {
			t.Fatalf("%d, %v", end, err)
		}
		got := make([]int16, len(want))
		if err := RleDecode(&c, page, got[:4]); err != nil {
			t.Fatal(err)
		}
		if err := RleDecode(&c, page, got[4:]); err != nil || !slices.Equal(got, want) {
			t.Errorf("low %v: got %v, %v", low, got, err)
		}
		if err := RleDecode(&c, page, got[:1]); err == nil {
			t.Errorf("low %v: a level after the last", low)
		}
		if _, _, err := levelCursor(page[:1], 0, len(want), 1, encodingBitPacked, -1, low); err == nil {
			t.Errorf("low %v: levels that end outside their page", low)
		}
	}
}

// TestFixedDeltas reads three values of two bytes in DELTA_BYTE_ARRAY: their prefixes have no bytes, their suffixes
// two.
func TestFixedDeltas(t *testing.T) {
	page := []byte{
		0x80, 1, 4, 3, 0, 0, 0, 0, 0, 0, // the lengths of the prefixes
		0x80, 1, 4, 3, 4, 0, 0, 0, 0, 0, // and of the suffixes
		'a', 'b', 'c', 'd', 'e', 'f',
	}
	for length, want := range map[int32]string{2: "ab cd ef", 3: "a value of 2 bytes where each has 3"} {
		n, err := schema.NewPrimitiveNode("x", parquet.Repetitions.Required, parquet.Types.FixedLenByteArray, -1,
			length)
		if err != nil {
			t.Fatal(err)
		}
		l, err := NewLibrary(schema.NewColumn(n, 0, 0), encodingDeltaByteArray)
		if err != nil {
			t.Fatal(err)
		}
		padded := append(slices.Clone(page), make([]byte, pagePadding)...)
		if err := l.Begin(&Header{Typ: Data, values: 3, Encoding: encodingDeltaByteArray, DefEncoding: EncodingRLE,
			RepEncoding: EncodingRLE, uncompressed: int32(len(page))}, padded[:len(page)]); err != nil {
			t.Fatal(err)
		}
		var s Values
		_, values, err := l.Decode(3, nil, nil, &s)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			for _, v := range s.Fixed[:values] {
				got += " " + string(v)
			}
		}
		if got = strings.TrimSpace(got); got != want {
			t.Errorf("length %d: got %s, want %s", length, got, want)
		}
	}
}
