package usage

import (
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
)

// A Summary is what was read of a table in a span of days: rollups, and records that no rollup has yet, added up in the
// three ways that people look at them. Load makes one.
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
	Damages
}

// Damages are the objects of a table that were passed over: the first 100 by name, and how many there are.
type Damages struct {
	Damaged      []Damage
	DamagedCount uint64
}

// maxDamaged bounds Damages.Damaged.
const maxDamaged = 100

func (d *Damages) damage(name string, err error) {
	if d.DamagedCount++; len(d.Damaged) < maxDamaged {
		d.Damaged = append(d.Damaged, Damage{name, err})
	}
}

// Add adds the damages of another table, all that have a name.
func (d *Damages) Add(o Damages) {
	d.Damaged, d.DamagedCount = append(d.Damaged, o.Damaged...), d.DamagedCount+o.DamagedCount
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

// A JobDay is how many readers a job had on a day.
type JobDay struct {
	Day     time.Time
	Readers uint64
}

// A DayTotal is what was read on a day.
type DayTotal struct {
	Day time.Time
	Counters
	Features int // that were read
	Jobs     int
}
