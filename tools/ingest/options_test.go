package ingest

import (
	"strings"
	"testing"

	"github.com/dsistore/dsistore/writer"
)

func TestOptionsNameTheBadField(t *testing.T) {
	for want, o := range map[string]Options{
		"memory of -1 bytes":   {Options: writer.Options{Memory: -1}},
		"-2 workers":           {Options: writer.Options{Workers: -2}},
		"segments of -1 rows":  {Options: writer.Options{SegmentRows: -1}},
		"stripes of -1 rows":   {Options: writer.Options{StripeRows: -1}},
		"stripes of -1 bytes":  {Options: writer.Options{StripeBytes: -1}},
		`on bad row "ignore"`:  {OnBadRow: "ignore"},
		"bad row report":       {BadRowReport: "x"},
		"overwrite and new":    {Overwrite: true, NewOnly: true},
		`column "c"`:           {PartitionBy: "c", TimeKey: "c"},
		"both partition and k": {PartitionBy: "c", SessionKey: "c"},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v: want %q", o, err, want)
		}
	}
	if err := (&Options{}).Validate(); err != nil {
		t.Error(err)
	}
}
