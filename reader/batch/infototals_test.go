package batch

import (
	"math"
	"reflect"
	"testing"
)

func TestInfoTotals(t *testing.T) {
	var none InfoTotals
	if s := none.Summary(); !reflect.DeepEqual(s, InfoSummary{DedupeMean: 1}) {
		t.Errorf("of nothing: %+v", s)
	}
	var totals InfoTotals
	add := func(sessions int, rows, slots uint64, labels ...LabelMean) {
		totals.Add(&Batch{Info: Info{Sessions: sessions, SlotRows: rows, Slots: slots, Labels: labels}})
	}
	add(4, 100, 50, LabelMean{Feature: 3, Rows: 10, Sum: 5}, LabelMean{Feature: 7})
	add(1, 100, 10, LabelMean{Feature: 3, Rows: 30, Sum: 3}, LabelMean{Feature: 7})
	add(2, 100, 100, LabelMean{Feature: 3}, LabelMean{Feature: 7})
	add(9, 10, 10, LabelMean{Feature: 3}, LabelMean{Feature: 7})
	want := InfoSummary{
		Batches: 4, SessionsMedian: 3, SessionsMean: 4, DedupeMedian: 1.5, DedupeMean: 310.0 / 170,
		Labels: []LabelSummary{{Feature: 3, Mean: 0.2, Deviation: 0.2}, {Feature: 7}},
	}
	got := totals.Summary()
	// Means that are far from 0 and near one another.
	var far InfoTotals
	for i := range 4 {
		far.Add(&Batch{Info: Info{Labels: []LabelMean{{Rows: 1, Sum: 1e9 + float64(i%2)}}}})
	}
	if d := far.Summary().Labels[0].Deviation; math.Abs(d-0.5) > 1e-9 {
		t.Errorf("deviation %v, want 0.5", d)
	}
	if d := got.Labels[0].Deviation; math.Abs(d-0.2) < 1e-9 {
		got.Labels[0].Deviation = 0.2
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
