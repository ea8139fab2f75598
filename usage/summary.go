package usage

import (
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
)

// A Summary is what was read of a table in a span of days: rollups, and records that no rollup has yet, added up in the
// three ways that people look at them. Load and Add make one.
type Summary struct {
	Table        string
	Since, Until time.Time // days, in UTC; Until is the first that is not looked at
	Total        Counters

	// Features by id, Jobs by (job, user) and Days by date, each sorted.
	Features []FeatureTotal
	Jobs     []JobTotal
	Days     []DayTotal

	Coverage
}

// A Coverage says which objects were looked at.
type Coverage struct {
	Records uint64 // those of processes
	Rollups uint64
	// Damaged are objects that were passed over, at most 100 of them by name; DamagedCount is how many there are.
	Damaged      []Damage
	DamagedCount uint64
}

// maxDamaged bounds Coverage.Damaged.
const maxDamaged = 100

func (c *Coverage) damage(name string, err error) {
	if c.DamagedCount++; len(c.Damaged) < maxDamaged {
		c.Damaged = append(c.Damaged, Damage{name, err})
	}
}

// A Damage is an object that could not be used, and why.
type Damage struct {
	Object string
	Err    error // a format.CorruptError, a format.UnsupportedError, or the error of reading it
}

// A FeatureTotal is what was read of a feature.
type FeatureTotal struct {
	FeatureUse
	First time.Time // day of the first read within the span
	Jobs  int       // that read it, told apart by name and user
	Days  int       // on which it was read
}

// A JobTotal is what a job has read. Its readers may run in many processes.
type JobTotal struct {
	Job, User string
	Programs  []string // sorted
	Purposes  []string // sorted
	Snapshot  uint64   // the newest
	Start     time.Time
	End       time.Time
	Counters
	Features []JobFeature // by id
	Days     []JobDay     // on which it read, by date
}

// A JobFeature is what a job has read of a feature.
type JobFeature struct {
	ID                                                 catalog.FeatureID
	Readers, Stripes, Rows, BytesNeeded, BytesUnneeded uint64
}

// A JobDay is what a job has read on a day.
type JobDay struct {
	Day                                       time.Time
	Readers, Rows, BytesNeeded, BytesUnneeded uint64
}

// A DayTotal is what was read on a day.
type DayTotal struct {
	Day time.Time
	Counters
	Features int // that were read
	Jobs     int
}
