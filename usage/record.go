package usage

import (
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
)

// A Record says what one job has read of a table in a day, in one process: the sum of all its readers that read the
// same. It has no values of rows, and only a hash of a filter, which may hold some.
//
// Counters only grow while a process runs. Where records are added up, as by a rollup, the fields in which they differ
// are empty.
type Record struct {
	Key

	// Host and PID are of the process; empty and 0 in sums.
	Host string
	PID  uint64
	// Snapshot is the newest that was read.
	Snapshot uint64

	// Start is when the first of the readers was opened that day or the day began, and End when the last of them was
	// seen to read, or was closed. In seconds.
	Start, End time.Time

	Counters

	// Features are what was read of each feature, by id: those of the projection, those that a filter was about, and a
	// session key that a shuffle needs. Partition keys are in no file and so are not here.
	Features []FeatureUse
}

// A Key is what the records that a process, or a rollup, adds up have in common.
type Key struct {
	Job     string // Options.Job, else DSISTORE_JOB, else the program's name
	User    string
	Program string // dsi, python or go: what opened the reader
	Purpose string // what was read for: one of those below; empty in sums of several
	Branch  string // empty: the table
	List    string // sample list that was asked for; empty: none
	Filter  uint64 // hash of the filter's text, another in each process; 0: none
}

// Purposes: what a table is read for. Who names none reads it.
const (
	PurposeRead    = "read"    // training, scans, rows that are taken, exports
	PurposeCount   = "count"   // rows of a filter are counted
	PurposeDelete  = "delete"  // rows are looked for that are to be deleted
	PurposeSelect  = "select"  // rows are looked for that a sample list is to have
	PurposeOverlay = "overlay" // keys that rows are joined by, and features of expressions, of an overlay that is made
)

// Counters are what readers have done. The zero value is nothing.
type Counters struct {
	Readers  uint64 // that were opened
	Rows     uint64 // given to the job
	Batches  uint64
	Requests uint64 // that readers asked for, of a cache on the local disk too

	BytesNeeded   uint64 // of the projected stripes
	BytesUnneeded uint64 // of the gaps between them that were read too

	Stall    time.Duration // the job waited
	Decode   time.Duration // over all threads: checksum, decode, widen
	Assemble time.Duration // over all threads: making batches of stripes
	Read     time.Duration // over all requests: until the bytes were there

	// SentReads and SentLists are the requests that a service of stores was sent, as often as it was sent them, and
	// BytesDown what it gave. BytesCached are what a cache on the local disk gave. 0 for stores on a local disk.
	SentReads, SentLists   uint64
	BytesDown, BytesCached uint64

	// StoredRows over StoredSlots is how often a slot that was decoded is used, and EmittedRows over EmittedSlots the
	// same of the batches.
	StoredRows, StoredSlots   uint64
	EmittedRows, EmittedSlots uint64
}

// BytesRead is everything that was fetched.
func (c *Counters) BytesRead() uint64 { return c.BytesNeeded + c.BytesUnneeded }

// StoredFactor is the rows per slot stored, 1 where nothing was decoded.
func (c *Counters) StoredFactor() float64 { return factor(c.StoredRows, c.StoredSlots) }

// EmittedFactor is the rows per slot in the batches, 1 where there were none.
func (c *Counters) EmittedFactor() float64 { return factor(c.EmittedRows, c.EmittedSlots) }

func factor(rows, slots uint64) float64 {
	if slots == 0 {
		return 1
	}
	return float64(rows) / float64(slots)
}

// A FeatureUse is what was read of a feature.
type FeatureUse struct {
	ID   catalog.FeatureID
	Name string // when it was read

	Readers uint64 // that read it
	Stripes uint64 // of its feature files that were fetched
	Rows    uint64 // in those stripes that were asked for

	// BytesNeeded are those of its stripes and dictionaries. An inverse that features share is divided among those that
	// are read. BytesUnneeded is its part of the gaps that were fetched, in proportion to the bytes needed. Over all
	// features they add up to the Record's.
	BytesNeeded   uint64
	BytesUnneeded uint64

	// Last is the End of the last reader that read it. In seconds.
	Last time.Time
}

// BytesRead is everything that was fetched for the feature.
func (u *FeatureUse) BytesRead() uint64 { return u.BytesNeeded + u.BytesUnneeded }
