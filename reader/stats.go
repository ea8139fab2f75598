package reader

import (
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/reader/load"
)

// Stats are what a Scanner has done so far.
type Stats struct {
	Rows, Batches   uint64
	BytesNeeded     uint64 // of the projected stripes
	BytesUnneeded   uint64 // of the gaps between them that were read too
	Requests        uint64
	DecodeSeconds   float64 // over all workers: checksum, decode, widen
	AssembleSeconds float64 // over all workers: making batches of stripes
	ReadSeconds     float64 // over all requests: until the bytes were there
	StallSeconds    float64 // Next waited
	// DecodedRows and DecodedSlots are those of the feature stripes decoded, added up, and DedupeFactor is the one over the other; 1 without
	// duplicates.
	DecodedRows, DecodedSlots uint64
	DedupeFactor              float64
	// SlotRows and Slots are those of the batches, added up, and EmittedFactor is the one over the other: 1 where the plan's
	// Dedup is DedupKJT.
	SlotRows, Slots uint64
	EmittedFactor   float64
	// Prefetched is how many batches are made now and were not yet given.
	Prefetched int64
	// StripeHits and StripeMisses are stripes that a Taker found decoded, and that it had to read.
	StripeHits, StripeMisses uint64
}

// counters are what Stats reports, of one scanner or of several that are one reader. Times are in nanoseconds.
type counters struct {
	rows, batches                 atomic.Uint64
	slotRows, slots               atomic.Uint64
	needed, unneeded              atomic.Uint64
	requests                      atomic.Uint64
	decodedRows, decodedSlots     atomic.Uint64
	decode, assemble, stall, read atomic.Int64
	ready                         atomic.Int64  // batches made and not yet given
	keptHits, keptMisses          atomic.Uint64 // of a Taker
	meter                         meter
}

// count counts a unit that is to be read.
func (c *counters) count(u *load.IOTask) {
	c.needed.Add(u.Needed)
	c.unneeded.Add(u.Unneeded)
	c.meter.count(u)
}

func (c *counters) stats() Stats {
	out := Stats{
		Rows: c.rows.Load(), Batches: c.batches.Load(), BytesNeeded: c.needed.Load(), BytesUnneeded: c.unneeded.Load(), Requests: c.requests.Load(),
		DecodeSeconds: time.Duration(c.decode.Load()).Seconds(), AssembleSeconds: time.Duration(c.assemble.Load()).Seconds(),
		ReadSeconds: time.Duration(c.read.Load()).Seconds(), StallSeconds: time.Duration(c.stall.Load()).Seconds(),
		SlotRows: c.slotRows.Load(), Slots: c.slots.Load(), DedupeFactor: 1, EmittedFactor: 1,
		DecodedRows: c.decodedRows.Load(), DecodedSlots: c.decodedSlots.Load(),
		Prefetched: c.ready.Load(), StripeHits: c.keptHits.Load(), StripeMisses: c.keptMisses.Load(),
	}
	if out.Slots > 0 {
		out.EmittedFactor = float64(out.SlotRows) / float64(out.Slots)
	}
	if out.DecodedSlots > 0 {
		out.DedupeFactor = float64(out.DecodedRows) / float64(out.DecodedSlots)
	}
	return out
}

// countBatch counts a batch that is given.
func (c *counters) countBatch(b *Batch) {
	c.batches.Add(1)
	c.rows.Add(uint64(b.Rows))
	c.slotRows.Add(b.SlotRows)
	c.slots.Add(b.Slots)
}
