package workload

import (
	"errors"
	"fmt"
	"strings"
)

// Version changes whenever the same Options would give other rows.
const Version = 1

// Order says how rows lie in the files.
type Order string

const (
	Interleaved Order = "interleaved" // as logs arrive
	Clustered   Order = "clustered"   // by session, then time
)

// Layout says how features map to Parquet columns.
type Layout string

const (
	Flat    Layout = "flat"    // one column a feature
	HiveMap Layout = "hivemap" // map<int,float>, map<int,list<bigint>> and map<int,map<bigint,float>>
)

// Codec compresses the Parquet pages.
type Codec string

const (
	Zstd   Codec = "zstd"
	Snappy Codec = "snappy"
)

// Options describe a table. The zero value is the profile "small", interleaved, flat, zstd, seed 0.
type Options struct {
	// Profile gives what the fields below leave at zero; default "small".
	//
	//	name      rows     sparse  dense
	//	small     100,000      60    100
	//	wide       10,000     600  3,400   4,000 features
	//	metawide      256   3,000 17,000  20,000 features
	//	narrow        256      30    170  metawide with 200 features
	//	long   10,000,000       4     16  few features, so that as many rows fit one machine
	Profile string
	Seed    uint64
	Rows    int64
	// Sparse counts id lists, weighted ones included; Weighted how many of them carry scores (default one in 15);
	// Dense counts scalars. One embedding, four keys and two labels come on top.
	Sparse, Weighted, Dense int

	// SamplesPerSession is the mean of rows per session, at least 1: the lengths of sessions are stretched to it, with
	// their long tail. Default 0: the published 16.5.
	SamplesPerSession float64
	// Changed is the probability that a user feature's value differs from that of the session's sample before, of every
	// one of them. Default 0: ranges of the published shape, a feature each.
	Changed float64

	Order  Order  // default Interleaved
	Layout Layout // default Flat
	Codec  Codec  // default Zstd
	// Partitions splits the rows over that many ds=.../hr=... directories, an hour each; 0: no directories.
	Partitions int
	// FirstHour is how many hours after 2026-11-01 00:00 UTC the first row comes.
	FirstHour int
	// Files is the number of files a partition; default 1.
	Files int
	// RowGroupRows bounds a row group, at most 131,072, the rows of a window. Default that, and 16,384 in the Hive map
	// layout, whose row groups are held in memory.
	RowGroupRows int

	// Progress is called as work is done, with values (rows times features) done and in all. It may be nil.
	Progress func(done, total int64)
}

type profile struct {
	name          string
	rows          int64
	sparse, dense int
}

var profiles = []profile{
	{"small", 100_000, 60, 100},
	{"wide", 10_000, 600, 3_400},
	{"metawide", 256, 3_000, 17_000},
	{"narrow", 256, 30, 170},
	{"long", 10_000_000, 4, 16},
}

// Profiles returns the names that Options.Profile accepts.
func Profiles() []string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.name
	}
	return names
}

// withDefaults returns o with every zero field replaced, or an error naming the first field that is wrong.
func (o Options) withDefaults() (Options, error) {
	if o.Profile == "" {
		o.Profile = profiles[0].name
	}
	var found *profile
	for i := range profiles {
		if profiles[i].name == o.Profile {
			found = &profiles[i]
		}
	}
	if found == nil {
		return o, fmt.Errorf("profile %q: want %s", o.Profile, strings.Join(Profiles(), ", "))
	}
	if o.Rows < 0 || o.Rows > 1<<40 {
		return o, fmt.Errorf("rows %d: want at least 1", o.Rows)
	}
	if o.Rows == 0 {
		o.Rows = found.rows
	}
	if o.Sparse < 0 || o.Dense < 0 || o.Weighted < 0 {
		return o, errors.New("sparse, weighted and dense: want no negative number of features")
	}
	if o.Sparse == 0 && o.Dense == 0 {
		o.Sparse, o.Dense = found.sparse, found.dense
	}
	if o.Sparse+o.Dense > 1<<20 {
		return o, fmt.Errorf("sparse and dense: %d features; want at most %d", o.Sparse+o.Dense, 1<<20)
	}
	if o.Weighted == 0 {
		o.Weighted = o.Sparse / 15
	}
	if histories := o.Sparse * historyPercent / 100; o.Weighted > histories {
		return o, fmt.Errorf("weighted %d: want at most %d, the histories among %d sparse features", o.Weighted,
			histories, o.Sparse)
	}
	if o.SamplesPerSession != 0 && (o.SamplesPerSession < 1 || o.SamplesPerSession > maxMeanSamples) ||
		o.SamplesPerSession != o.SamplesPerSession {
		return o, fmt.Errorf("samples per session %v: want 1 to %d, or 0 for the published shape", o.SamplesPerSession,
			maxMeanSamples)
	}
	if !(o.Changed >= 0 && o.Changed <= 1) {
		return o, fmt.Errorf("changed %v: want a probability, or 0 for the published shape", o.Changed)
	}
	if o.Order == "" {
		o.Order = Interleaved
	}
	if o.Order != Interleaved && o.Order != Clustered {
		return o, fmt.Errorf("order %q: want %s or %s", o.Order, Interleaved, Clustered)
	}
	if o.Layout == "" {
		o.Layout = Flat
	}
	if o.Layout != Flat && o.Layout != HiveMap {
		return o, fmt.Errorf("layout %q: want %s or %s", o.Layout, Flat, HiveMap)
	}
	if o.Codec == "" {
		o.Codec = Zstd
	}
	if o.Codec != Zstd && o.Codec != Snappy {
		return o, fmt.Errorf("codec %q: want %s or %s", o.Codec, Zstd, Snappy)
	}
	if o.Partitions < 0 || int64(o.Partitions) > o.Rows {
		return o, fmt.Errorf("partitions %d: want 0 to %d, the rows", o.Partitions, o.Rows)
	}
	if o.FirstHour < 0 || o.FirstHour > maxFirstHour {
		return o, fmt.Errorf("first hour %d: want 0 to %d", o.FirstHour, maxFirstHour)
	}
	if o.Files == 0 {
		o.Files = 1
	}
	if o.Files < 0 || int64(o.Files) > o.Rows/int64(max(o.Partitions, 1)) {
		return o, fmt.Errorf("files %d: want at least 1 and a row for each file of a partition", o.Files)
	}
	if o.RowGroupRows == 0 {
		o.RowGroupRows = windowRows
		if o.Layout == HiveMap {
			o.RowGroupRows = mapRowGroupRows
		}
	}
	if o.RowGroupRows < 0 || o.RowGroupRows > windowRows {
		return o, fmt.Errorf("row group rows %d: want 1 to %d", o.RowGroupRows, windowRows)
	}
	return o, nil
}
