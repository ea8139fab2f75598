package batch

import (
	"math"
	"slices"
)

// InfoTotals sums the Infos of batches. The zero value is empty. It takes 16 bytes per batch.
type InfoTotals struct {
	sessions, factors []float64 // of each batch
	slotRows, slots   uint64
	labels            []labelTotals
}

type labelTotals struct {
	feature int32
	rows    int
	sum     float64
	// Of the batches that have a mean: their number, the mean of the means, and the sum of the squares of how far they
	// are from it (Welford, Note on a method for calculating corrected sums of squares and products, 1962).
	batches, mean, squares float64
}

// An InfoSummary summarizes the Infos of batches.
type InfoSummary struct {
	Batches int
	// SessionsMedian and SessionsMean are sessions per batch; 0 if they are not known.
	SessionsMedian, SessionsMean float64
	// DedupeMedian is the median of the batches' dedupe factors; DedupeMean is all rows divided by all slots.
	DedupeMedian, DedupeMean float64
	Labels                   []LabelSummary
}

// A LabelSummary is a label over all batches.
type LabelSummary struct {
	Feature int32   // its position in Plan.Features
	Mean    float64 // over all rows where it is not null; 0 if there are none
	// Deviation is the standard deviation of the batches' means: the smaller, the more representative each batch is.
	Deviation float64
}

// Add adds the Info of b, which was read with Options.Info. It does not keep b.
func (t *InfoTotals) Add(b *Batch) {
	x := &b.Info
	t.sessions = append(t.sessions, float64(x.Sessions))
	t.factors = append(t.factors, x.DedupeFactor())
	t.slotRows += x.SlotRows
	t.slots += x.Slots
	if t.labels == nil {
		t.labels = make([]labelTotals, len(x.Labels))
	}
	for i, m := range x.Labels {
		l := &t.labels[i]
		l.feature = m.Feature
		if m.Rows == 0 {
			continue
		}
		l.rows += m.Rows
		l.sum += m.Sum
		l.batches++
		off := m.Mean() - l.mean
		l.mean += off / l.batches
		l.squares += off * (m.Mean() - l.mean)
	}
}

// Summary returns the summary of all batches added.
func (t *InfoTotals) Summary() InfoSummary {
	s := InfoSummary{
		Batches: len(t.sessions), SessionsMedian: median(t.sessions), SessionsMean: mean(t.sessions),
		DedupeMedian: median(t.factors), DedupeMean: (&Info{SlotRows: t.slotRows, Slots: t.slots}).DedupeFactor(),
	}
	for _, l := range t.labels {
		out := LabelSummary{Feature: l.feature}
		if l.batches > 0 {
			out.Mean = l.sum / float64(l.rows)
			out.Deviation = math.Sqrt(l.squares / l.batches)
		}
		s.Labels = append(s.Labels, out)
	}
	return s
}

func mean(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

// median returns the median of list: the middle element, or the mean of the two middle ones.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(list))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
