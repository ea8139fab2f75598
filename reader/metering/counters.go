package metering

import (
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/usage"
)

// Stats are the counters of a reader.
type Stats struct {
	Rows, Batches   uint64
	BytesNeeded     uint64  // stored bytes of the stripes and dictionaries that were read
	BytesUnneeded   uint64  // bytes in gaps between them that were read with them
	Requests        uint64  // that the reader asked for; Traffic has those that were sent
	DecodeSeconds   float64 // sum over workers: verifying checksums, decoding, widening, transforms
	AssembleSeconds float64 // sum over workers: assembling batches
	ReadSeconds     float64 // sum over requests: latency
	StallSeconds    float64 // time that Next waited
	// DecodedRows and DecodedSlots are the rows and slots of all decoded stripes of features. DedupeFactor is their
	// quotient; 1 without duplicates.
	DecodedRows, DecodedSlots uint64
	DedupeFactor              float64
	// SlotRows and Slots are the sums of the batches' (batch.Batch). EmittedFactor is their quotient: 1 where the
	// plan's Dedup is DedupKJT and Options.KeepSlots does not ask for slots.
	SlotRows, Slots uint64
	EmittedFactor   float64
	// Prefetched is the number of batches that are assembled and not yet returned by Next.
	Prefetched int64
	// Traffic is what the store's service was sent for it, from the reader's opening on.
	Traffic object.Traffic
	// StripeHits are stripes that a Taker found in its cache, StripeMisses those that it read.
	StripeHits, StripeMisses uint64
}

// Counters count the work of one scanner, or of all scanners of one reader. Times are in nanoseconds.
type Counters struct {
	Rows, Batches                 atomic.Uint64
	SlotRows, Slots               atomic.Uint64
	Needed, Unneeded              atomic.Uint64
	Requests                      atomic.Uint64
	DecodedRows, DecodedSlots     atomic.Uint64
	Decode, Assemble, Stall, Read atomic.Int64
	Ready                         atomic.Int64  // Stats.Prefetched
	StripeHits, StripeMisses      atomic.Uint64 // of a Taker
	Meter                         Meter
	Traffic                       object.TrafficCounter
}

// CountTask counts an I/O task that is to be read.
func (c *Counters) CountTask(u *ioplan.IOTask) {
	c.Needed.Add(u.Needed)
	c.Unneeded.Add(u.Unneeded)
	c.Meter.count(u)
}

// CountBatch counts a batch that is returned to the caller.
func (c *Counters) CountBatch(b *batch.Batch) {
	c.Batches.Add(1)
	c.Rows.Add(uint64(b.Rows))
	c.SlotRows.Add(b.SlotRows)
	c.Slots.Add(b.Slots)
}

// Since adds the time since start to one of the times.
func Since(start time.Time, to *atomic.Int64) { to.Add(int64(time.Since(start))) }

// Usage returns the counters in the form of usage records.
func (c *Counters) Usage() usage.Counters {
	t := c.Traffic.Traffic()
	return usage.Counters{
		Rows: c.Rows.Load(), Batches: c.Batches.Load(), Requests: c.Requests.Load(),
		BytesNeeded: c.Needed.Load(), BytesUnneeded: c.Unneeded.Load(),
		Stall: time.Duration(c.Stall.Load()), Decode: time.Duration(c.Decode.Load()),
		Assemble: time.Duration(c.Assemble.Load()), Read: time.Duration(c.Read.Load()),
		StoredRows: c.DecodedRows.Load(), StoredSlots: c.DecodedSlots.Load(),
		EmittedRows: c.SlotRows.Load(), EmittedSlots: c.Slots.Load(),
		SentReads: t.Reads, SentLists: t.Lists, BytesDown: t.BytesDown, BytesCached: t.BytesCached,
	}
}

// Stats returns the values of the counters.
func (c *Counters) Stats() Stats {
	u := c.Usage()
	return Stats{
		Rows: u.Rows, Batches: u.Batches, BytesNeeded: u.BytesNeeded, BytesUnneeded: u.BytesUnneeded,
		Requests:      u.Requests,
		DecodeSeconds: u.Decode.Seconds(), AssembleSeconds: u.Assemble.Seconds(),
		ReadSeconds: u.Read.Seconds(), StallSeconds: u.Stall.Seconds(),
		DecodedRows: u.StoredRows, DecodedSlots: u.StoredSlots, DedupeFactor: u.StoredFactor(),
		SlotRows: u.EmittedRows, Slots: u.EmittedSlots, EmittedFactor: u.EmittedFactor(),
		Traffic: c.Traffic.Traffic(), Prefetched: c.Ready.Load(),
		StripeHits: c.StripeHits.Load(), StripeMisses: c.StripeMisses.Load(),
	}
}
