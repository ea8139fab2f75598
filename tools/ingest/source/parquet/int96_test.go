package parquet

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/page"
)

// TestInt96Faults says of timestamps that have no place which part of them is wrong.
func TestInt96Faults(t *testing.T) {
	value := func(nanos int64, day int32) (v parquet.Int96) {
		binary.LittleEndian.PutUint64(v[:], uint64(nanos))
		binary.LittleEndian.PutUint32(v[8:], uint32(day))
		return v
	}
	for _, tc := range []struct {
		v    parquet.Int96
		want string
	}{
		{value(5, 2440588), ""}, {value(86400e9+1, 2440588), ""}, {value(-1, 2440588),
			"-1 nanoseconds after the start of its day"},
		{value(0, 0), "-4713-11-24 00:00:00 is not in the years 1677 to 2262"}, {value(math.MaxInt64, 2440589),
			"2262-04-12 23:47:16.854775807 is not in"},
		{value(0, 5373484), "9999-12-31 00:00:00 is not in"},
	} {
		dst := &column.Array{Type: &column.Type{Logical: "timestamp[ns]"}}
		if err := convertInt96(dst, &page.Values{I96: []parquet.Int96{tc.v}}, 1, nil); err != nil {
			t.Fatal(err)
		}
		if len(dst.Faults) == 0 != (tc.want == "") || tc.want != "" &&
			!strings.Contains(dst.Faults[0].Err.Error(), tc.want) {
			t.Errorf("%v: got %v, want %q", tc.v, dst.Faults, tc.want)
		}
	}
}
