// Package pagetest makes up reports, for the tests, screenshots and measurements of the page. What is in one hangs
// together as in a true one: causes add up to the byte, jobs read features by a Zipf law, days are what jobs did on
// them.
package pagetest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/dsistore/dsistore/tools/report"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Store and Table are what the report is of.
const (
	Store = "/data/training"
	Table = "ads_ranking"
)

const (
	rows  = 48_000_000
	days  = 61
	jobs  = 40
	parts = 61
)

var (
	since = time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	until = since.AddDate(0, 0, days)
)

// Report returns a report of a table with so many features, at least 20; the same for the same seed.
func Report(seed uint64, features int) *report.Report {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 8))}
	g.features(features)
	g.jobs()
	g.days()
	g.curve()
	g.summary()
	g.health()
	g.advice()
	return &report.Report{
		Schema: report.Schema, Made: stamp(until.Add(5*time.Hour + 12*time.Minute)), Store: Store, Since: day(since),
		Tables: []report.Table{g.t},
	}
}

// Empty returns a table in which nothing is.
func Empty(name string) report.Table {
	return report.Table{
		Table: name, Curve: report.Curve{Points: []report.CurvePoint{}, Marks: []report.CurvePoint{}},
		Features: []report.Feature{}, Groups: []report.Group{},
		Jobs: []report.Job{}, Days: []report.Day{}, Advice: []report.Advice{},
		Savings: report.Savings{Causes: []report.Cause{}, Overlays: []report.OverlaySaving{},
			Lists: []report.ListSaving{}},
		Health: report.Health{
			Overlays: []report.OverlayHealth{}, Lists: []report.ListHealth{}, Branches: []report.BranchHealth{},
			Leases:    []report.LeaseHealth{},
			Snapshots: report.SnapshotHealth{Holding: []report.SnapshotHolder{}},
			Records:   report.UsageHealth{DamagedNames: []string{}},
			Largest:   []report.SegmentSummary{}, Smallest: []report.SegmentSummary{},
		},
	}
}

type generator struct {
	*rand.Rand
	t       report.Table
	popular []int                // features, the most popular first
	on      []map[int]bool       // features read on each day
	readers map[int]map[int]bool // jobs of each feature
}

func day(t time.Time) string   { return t.Format("2006-01-02") }
func stamp(t time.Time) string { return t.Format(time.RFC3339) }

var (
	sides  = []string{"user", "user", "user", "item", "item", "context", "advertiser"}
	things = []string{"clicks", "views", "likes", "shares", "searches", "topics", "category", "price", "dwell", "ctr",
		"age", "region", "device",
		"follows", "carts", "orders", "impressions", "embedding", "brand", "language", "visits", "score"}
	spans = []string{"1h", "6h", "1d", "7d", "28d", "90d", "all", "last", "mean", "top"}
)

func (g *generator) features(n int) {
	kinds := []struct {
		kind, typ      string
		share          float64
		length, width  float64
		coverage, slot float64
	}{
		{"dense", "float32", 0.56, 1, 4, 0.92, 6},
		{"sparse", "list<int64>", 0.3, 24, 8, 0.45, 9},
		{"weighted", "list<int64:float32>", 0.09, 17, 12, 0.4, 8},
		{"embedding", "float32[64]", 0.02, 64, 4, 0.7, 11},
		{"string", "string", 0.03, 11, 1, 0.95, 5},
	}
	seen := map[string]bool{}
	for i := range n {
		k, at := 0, g.Float64()
		for ; k+1 < len(kinds) && at > kinds[k].share; k++ {
			at -= kinds[k].share
		}
		kind := kinds[k]
		f := report.Feature{Kind: kind.kind, Type: kind.typ, Segments: parts}
		for f.Name == "" || seen[f.Name] {
			f.Name = fmt.Sprintf(
				"%s_%s_%s_%03d",
				sides[g.IntN(len(sides))],
				things[g.IntN(len(things))],
				spans[g.IntN(len(spans))],
				g.IntN(max(40, n/20)),
			)
		}
		switch i {
		case 0:
			f.Name, f.Role = "session_id", "session"
		case 1:
			f.Name, f.Role = "click", "label"
		}
		seen[f.Name] = true
		f.ID = fmt.Sprintf("%016x", g.Uint64())
		f.Coverage = min(1, kind.coverage*(0.4+0.7*g.Float64()))
		f.MeanLength = 1
		if kind.length > 1 {
			f.MeanLength = kind.length * math.Exp(0.8*g.NormFloat64())
		}
		f.Elements = uint64(rows * f.Coverage * f.MeanLength)
		f.RawBytes = uint64(float64(f.Elements)*kind.width) + rows/8
		f.DedupeFactor = 1 + (kind.slot-1)*g.Float64()
		if strings.HasPrefix(f.Name, "item") {
			f.DedupeFactor = 1 + 0.4*g.Float64()
		}
		f.Slots = uint64(rows / f.DedupeFactor)
		f.StoredElements = uint64(float64(f.Elements) / f.DedupeFactor / (1 + 0.6*g.Float64()))
		most := f.Slots / uint64(1+g.IntN(400))
		f.Distinct = &report.Distinct{AtLeast: most / 9, AtMost: &most}
		g.save(&f, kind.kind)
		g.t.Features = append(g.t.Features, f)
	}
	slices.SortFunc(g.t.Features, func(a, b report.Feature) int { return strings.Compare(a.Name, b.Name) })
	var sparse []int
	for i, f := range g.t.Features {
		if f.Kind == "sparse" && g.Float64() < 0.6 {
			sparse = append(sparse, i)
		}
	}
	for len(sparse) > 1 {
		size := min(len(sparse), 2+g.IntN(9))
		group := report.Group{Group: g.t.Features[sparse[0]].Name, Segments: parts, Bytes: rows / 9}
		for _, i := range sparse[:size] {
			g.t.Features[i].Group = group.Group
			group.Features = append(group.Features, g.t.Features[i].Name)
		}
		group.SavedBytes = group.Bytes * uint64(size-1)
		g.t.Groups = append(g.t.Groups, group)
		sparse = sparse[size:]
	}
}

// save makes a chain of causes from the raw bytes of a feature to its stored ones.
func (g *generator) save(f *report.Feature, kind string) {
	left := int64(f.RawBytes)
	f.Saved = map[string]int64{}
	take := func(cause string, bytes int64) {
		if bytes != 0 {
			f.Saved[cause] = bytes
			left -= bytes
		}
	}
	take(report.CauseRuns, int64(float64(left)*(1-1/f.DedupeFactor)*0.9))
	take(report.CauseSlots, int64(float64(left)*0.08*g.Float64()))
	if kind == "sparse" || kind == "weighted" {
		take(report.CausePartial, int64(float64(left)*0.35*g.Float64()))
	}
	take(report.CauseEncodings, int64(float64(left)*(0.35+0.4*g.Float64())))
	take(report.CauseShape, -int64(f.Slots/40))
	take(report.CauseInverses, -int64(f.Slots/90))
	f.StoredBytes = uint64(max(left, 1000))
	f.Saved[report.CauseEncodings] += left - int64(f.StoredBytes)
	f.DuplicatesSaved = uint64(float64(f.StoredBytes) * (f.DedupeFactor - 1) * 0.4)
}

var teams = []string{"ads-ranker", "feed-ranker", "retrieval", "notifications", "search", "calibration", "lookalike",
	"shop-ranker"}

func (g *generator) jobs() {
	n := len(g.t.Features)
	g.popular = g.Perm(n)
	g.on = make([]map[int]bool, days)
	g.readers = map[int]map[int]bool{}
	g.t.Days = make([]report.Day, days)
	for d := range days {
		g.on[d] = map[int]bool{}
		n := uint64(rows * (d + 1) / days)
		g.t.Days[d] = report.Day{Day: day(since.AddDate(0, 0, d)), TableRows: &n}
	}
	last := make([]int, n)
	for i := range last {
		last[i] = -1
	}
	for j := range jobs {
		// Each job reads a tenth of the features, of the popular ones most: only the upper 55 % are ever asked for.
		mine := map[int]bool{}
		for len(mine) < max(3, n/10) {
			rank := int(float64(n) * 0.55 * math.Pow(g.Float64(), 2.6))
			mine[g.popular[rank]] = true
		}
		job := report.Job{Job: fmt.Sprintf("%s-%02d", teams[j%len(teams)], j), User: teams[j%len(teams)] + "-team",
			Programs: []string{"python"},
			Snapshot: uint64(100 + j*7), Features: uint64(len(mine))}
		if j == 7 || j == 22 {
			job.Programs = []string{"dsi", "python"}
		}
		job.Jobs = 1
		job.Amplification, job.DedupeFactor, job.EmittedFactor = 1, 1, 1+5*g.Float64()
		var bytes uint64
		for f := range mine {
			bytes += g.t.Features[f].StoredBytes
		}
		waste := 0.04 + 0.3*g.Float64()
		first, every := g.IntN(days), 1+g.IntN(4)
		if j < 12 {
			first = 0
		}
		end := min(days, first+8+g.IntN(days))
		for d := first; d < end; d += every {
			weekday := since.AddDate(0, 0, d).Weekday()
			if (weekday == time.Saturday || weekday == time.Sunday) && g.Float64() < 0.7 {
				continue
			}
			scale := float64(d+1) / days
			r := report.Reads{
				Readers:      8,
				Jobs:         1,
				Rows:         uint64(rows * scale),
				Batches:      uint64(rows * scale / 8192),
				Requests:     uint64(2000 * scale * float64(len(mine)) / 50),
				BytesNeeded:  uint64(float64(bytes) * scale),
				StallSeconds: 900 * g.Float64() * g.Float64() * scale,
			}
			r.BytesUnneeded = uint64(float64(r.BytesNeeded) * waste)
			r.ReadSeconds, r.DecodeSeconds, r.AssembleSeconds = float64(r.BytesNeeded)/9e8, float64(r.BytesNeeded)/6e8,
				float64(r.BytesNeeded)/2e9
			add(&job.Reads, r)
			add(&g.t.Days[d].Reads, r)
			job.Days++
			if job.First == "" {
				job.First = stamp(since.AddDate(0, 0, d).Add(2 * time.Hour))
			}
			job.Last = stamp(since.AddDate(0, 0, d).Add(7*time.Hour + time.Duration(j)*time.Minute))
			for f := range mine {
				g.on[d][f] = true
				last[f] = max(last[f], d)
				u, share := &g.t.Features[f].Use, float64(g.t.Features[f].StoredBytes)/float64(bytes)
				u.Readers += 8
				u.RowsRead += r.Rows
				u.Stripes += r.Rows / 65536
				u.BytesNeeded += uint64(float64(r.BytesNeeded) * share)
				u.BytesUnneeded += uint64(float64(r.BytesUnneeded) * share)
				if g.readers[f] == nil {
					g.readers[f] = map[int]bool{}
				}
				g.readers[f][j] = true
			}
		}
		if job.Days == 0 {
			continue
		}
		finish(&job.Reads)
		job.Jobs, job.FeatureShare, job.BytesShare = 1, float64(len(mine))/float64(n),
			float64(bytes)/float64(g.stored())
		g.t.Jobs = append(g.t.Jobs, job)
	}
	slices.SortFunc(g.t.Jobs, func(a, b report.Job) int { return cmp.Compare(b.BytesNeeded, a.BytesNeeded) })
	for i := range g.t.Features {
		u := &g.t.Features[i].Use
		u.Jobs = uint64(len(g.readers[i]))
		u.UnreadDays = days
		if last[i] >= 0 {
			u.FirstRead, u.LastRead = day(since), stamp(since.AddDate(0, 0, last[i]).Add(6*time.Hour))
			u.UnreadDays = uint64(days - 1 - last[i])
		}
		for d := range days {
			if g.on[d][i] {
				u.Days++
			}
		}
	}
}

func add(to *report.Reads, r report.Reads) {
	to.Readers += r.Readers
	to.Jobs += r.Jobs
	to.Rows += r.Rows
	to.Batches += r.Batches
	to.Requests += r.Requests
	to.BytesNeeded += r.BytesNeeded
	to.BytesUnneeded += r.BytesUnneeded
	to.StallSeconds += r.StallSeconds
	to.ReadSeconds += r.ReadSeconds
	to.DecodeSeconds += r.DecodeSeconds
	to.AssembleSeconds += r.AssembleSeconds
}

func finish(r *report.Reads) {
	r.DedupeFactor = 5.2
	if r.EmittedFactor == 0 {
		r.EmittedFactor = 4.1
	}
	if r.BytesNeeded > 0 {
		r.Amplification = float64(r.BytesNeeded+r.BytesUnneeded) / float64(r.BytesNeeded)
	}
}

func (g *generator) stored() (sum uint64) {
	for i := range g.t.Features {
		sum += g.t.Features[i].StoredBytes
	}
	return sum
}

func (g *generator) days() {
	for d := range g.t.Days {
		finish(&g.t.Days[d].Reads)
		g.t.Days[d].Features = uint64(len(g.on[d]))
	}
}

func (g *generator) curve() {
	order := slices.Clone(g.t.Features)
	density := func(f report.Feature) float64 { return float64(f.BytesNeeded+f.BytesUnneeded) / float64(f.StoredBytes) }
	slices.SortStableFunc(order, func(a, b report.Feature) int { return cmp.Compare(density(b), density(a)) })
	stored, traffic := float64(g.stored()), 0.0
	for _, f := range order {
		traffic += float64(f.BytesNeeded + f.BytesUnneeded)
	}
	marks, every := []float64{0.5, 0.8, 0.9, 0.95, 0.99}, max(1, len(order)/256)
	p := report.CurvePoint{}
	g.t.Curve = report.Curve{Points: []report.CurvePoint{p}, Marks: []report.CurvePoint{}}
	for i, f := range order {
		p.Bytes += float64(f.StoredBytes) / stored
		p.Traffic += float64(f.BytesNeeded+f.BytesUnneeded) / traffic
		p.Features++
		for len(marks) > 0 && p.Traffic >= marks[0] {
			g.t.Curve.Marks = append(g.t.Curve.Marks, p)
			marks = marks[1:]
		}
		if i%every == every-1 && i+1 < len(order) {
			g.t.Curve.Points = append(g.t.Curve.Points, p)
		}
	}
	g.t.Curve.Points = append(g.t.Curve.Points, report.CurvePoint{Bytes: 1, Traffic: 1, Features: uint64(len(order))})
}

func (g *generator) summary() {
	s := &g.t.Summary
	g.t.Table = Table
	sums := map[string]int64{}
	var slots uint64
	stored := float64(g.stored())
	for _, f := range g.t.Features {
		s.RawBytes += f.RawBytes
		slots += f.Slots
		g.t.Savings.DuplicatesSaved += f.DuplicatesSaved
		for cause, n := range f.Saved {
			sums[cause] += n
		}
		if f.LastRead != "" {
			s.FeaturesRead++
			s.BytesReadShare += float64(f.StoredBytes) / stored
			s.LastRead = max(s.LastRead, f.LastRead)
		}
	}
	for _, group := range g.t.Groups {
		sums[report.CauseInverses] -= int64(group.Bytes + group.SavedBytes)
		sums[report.CauseGroups] += int64(group.SavedBytes)
	}
	sums[report.CauseFrames] = -int64(len(g.t.Features)) * parts * 96
	s.StoredBytes = s.RawBytes
	meanings := map[string]string{
		report.CauseRuns:      "rows equal to the one before are not stored",
		report.CauseSlots:     "values that come again later in a stripe are not stored",
		report.CausePartial:   "lists that are part of a longer one are an offset and a length",
		report.CauseEncodings: "what is stored takes fewer bytes than plain numbers",
		report.CauseShape:     "presence and lengths of lists", report.CauseInverses: "which row has which slot",
		report.CauseGroups: "features that repeat together share that",
		report.CauseFrames: "directories, footers, checksums",
	}
	for _, cause := range []string{report.CauseRuns, report.CauseSlots, report.CausePartial, report.CauseEncodings,
		report.CauseShape, report.CauseInverses, report.CauseGroups, report.CauseFrames} {
		c := report.Cause{Cause: cause, Bytes: sums[cause], Meaning: meanings[cause]}
		if cause == report.CauseSlots {
			c.EstimatedBytes = uint64(c.Bytes)
		}
		g.t.Savings.Causes = append(g.t.Savings.Causes, c)
		s.StoredBytes = uint64(int64(s.StoredBytes) - c.Bytes)
	}
	g.t.Savings.RawBytes, g.t.Savings.StoredBytes = s.RawBytes, s.StoredBytes
	s.Snapshot, s.SnapshotTime, s.Operation = 412, stamp(until.Add(time.Hour)), "append"
	s.Rows, s.RowsStored, s.Partitions, s.Segments, s.Features = rows-81_204, rows, parts, parts*2,
		uint64(len(g.t.Features))
	s.LayerBytes = rows / 3
	s.BytesPerRow, s.Ratio = float64(s.StoredBytes)/rows, float64(s.RawBytes)/float64(s.StoredBytes)
	s.DedupeFactor = float64(rows) * float64(len(g.t.Features)) / float64(slots)
	for _, j := range g.t.Jobs {
		add(&s.Reads, j.Reads)
	}
	s.Reads.Jobs = uint64(len(g.t.Jobs))
	finish(&s.Reads)
	for d := range g.t.Days {
		n := s.StoredBytes * uint64(d+1) / days
		g.t.Days[d].TableBytes = &n
	}
	g.t.Savings.Overlays = []report.OverlaySaving{
		{Overlay: "long_click", Bytes: rows / 3, CopyBytes: s.StoredBytes + rows/3, SavedBytes: s.StoredBytes,
			Features: 1},
	}
	g.t.Savings.Lists = []report.ListSaving{{List: "holdout_5", Rows: rows / 20, SavedBytes: s.StoredBytes / 20}}
	g.t.Savings.Deleted = report.Waiting{Count: 81_204, Segments: 14, Bytes: s.StoredBytes / 590}
}

func (g *generator) health() {
	s := g.t.Summary
	segment := func(i int, n uint64) report.SegmentSummary {
		return report.SegmentSummary{
			Segment:   fmt.Sprintf("%08x-%04x", g.Uint32(), i),
			Partition: "ds=" + day(since.AddDate(0, 0, i)),
			Rows:      n,
			Bytes:     s.StoredBytes / rows * n,
		}
	}
	g.t.Health = report.Health{
		Segments: report.SegmentHealth{
			Count:      s.Segments,
			MeanRows:   rows / parts / 2,
			MeanBytes:  float64(s.StoredBytes) / parts / 2,
			IndexBytes: s.StoredBytes / 900,
			Small:      9,
			SmallBytes: s.StoredBytes / 300,
			WholeRows:  1 << 20,
			WholeBytes: 1 << 30,
			Mergeable:  8,
		},
		Packs: report.PackHealth{
			Packs:           731,
			PackBytes:       s.StoredBytes * 9 / 10,
			Files:           212,
			FileBytes:       s.StoredBytes / 10,
			WholeBytes:      256 << 20,
			Small:           11,
			SmallBelowBytes: 32 << 20,
		},
		Overlays: []report.OverlayHealth{
			{
				Overlay:  "long_click",
				Added:    402,
				Features: []string{"long_click"},
				Segments: s.Segments,
				Layers:   s.Segments - 2,
				Rows:     rows,
				Covered:  rows * 97 / 100,
				Coverage: 0.97,
				Bytes:    rows / 3,
			},
		},
		Lists: []report.ListHealth{
			{List: "holdout_5", Definition: "sample(0.05, key=session_id, seed=7)", Added: 390, Rows: rows / 20,
				Share: 0.05},
		},
		Snapshots: report.SnapshotHealth{
			First:      371,
			Newest:     412,
			Count:      42,
			AloneBytes: s.StoredBytes / 40,
			Holding: []report.SnapshotHolder{
				{Snapshot: 398, Time: stamp(until.AddDate(0, 0, -9)), Operation: "append", Next: "compact",
					Bytes: s.StoredBytes / 40},
			},
		},
		Branches: []report.BranchHealth{
			{
				Branch:    "long-click-test",
				Owner:     "feed-ranker-team",
				Created:   stamp(until.AddDate(0, 0, -12)),
				Snapshots: []uint64{398},
				Overlays:  []string{"long_click"},
			},
		},
		Leases: []report.LeaseHealth{{Owner: "ads-ranker-04@host-17", Snapshot: 410,
			Until: stamp(until.Add(30 * time.Hour))}},
		Records: report.UsageHealth{First: day(since), Last: day(until.AddDate(0, 0, -1)), Records: 311, Rollups: days,
			DamagedNames: []string{}},
		Largest:  []report.SegmentSummary{segment(1, 1<<20)},
		Smallest: []report.SegmentSummary{segment(3, 2111), segment(9, 40_812)},
	}
}

func (g *generator) advice() {
	s := g.t.Summary
	var unread []report.Feature
	var bytes uint64
	for _, f := range g.t.Features {
		if f.LastRead == "" && f.Role == "" {
			unread = append(unread, f)
			bytes += f.StoredBytes
		}
	}
	slices.SortFunc(unread, func(a, b report.Feature) int { return cmp.Compare(b.StoredBytes, a.StoredBytes) })
	var names []string
	for _, f := range unread[:min(100, len(unread))] {
		names = append(names, f.Name)
	}
	over := s.Reads.BytesUnneeded * 7 / 10
	g.t.Advice = []report.Advice{
		{
			Kind: report.AdviceUnread,
			Text: fmt.Sprintf(
				"%d features were not read for %d days or more, as far as %d readers of %d jobs on %[2]d days since "+
					"%[5]s say: dropped, and then taken out by dsi compact, they would save %[6]s, %.1[7]f %% of "+
					"what is stored",
				len(unread), days, s.Reads.Readers, s.Reads.Jobs, day(since), terminal.Bytes(bytes),
				100*float64(bytes)/float64(s.StoredBytes),
			),
			Command: fmt.Sprintf("dsistat advise %s %s --unread %d --names unread | dsi features drop %[1]s "+
				"%[2]s --from -", Store, Table, days),
			SavedBytes:   bytes,
			Features:     names,
			FeatureCount: uint64(len(unread)),
			Readers:      s.Reads.Readers,
			Jobs:         s.Reads.Jobs,
			Days:         days,
		},
		{
			Kind: report.AdviceRepack,
			Text: fmt.Sprintf("packs in the order in which features are read would have saved about %s of the %s "+
				"that %d readers of %d jobs need not have read (70 %%)",
				terminal.Bytes(over), terminal.Bytes(s.Reads.BytesUnneeded), s.Reads.Readers, s.Reads.Jobs),
			Command:       fmt.Sprintf("dsi compact %s %s --repack --popular-days %d", Store, Table, days+1),
			UnneededBytes: over,
			Estimate:      true,
			Features:      []string{},
		},
		{
			Kind: report.AdviceExpire,
			Text: fmt.Sprintf("snapshots before 412 alone hold %s: let those expire that nobody needs, then "+
				"dsi gc", terminal.Bytes(s.StoredBytes/40)),
			Command:    fmt.Sprintf("dsi snapshots expire %s %s --keep-last 1", Store, Table),
			SavedBytes: s.StoredBytes / 40,
			Features:   []string{},
		},
		{
			Kind: report.AdviceMerge,
			Text: fmt.Sprintf("8 segments, %s, would become about 2: they are small; about %s less",
				terminal.Bytes(s.StoredBytes/300), terminal.Bytes(s.StoredBytes/4000)),
			Command:    fmt.Sprintf("dsi compact %s %s", Store, Table),
			SavedBytes: s.StoredBytes / 4000,
			Estimate:   true,
			Features:   []string{},
		},
	}
}
