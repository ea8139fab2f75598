package simulate

// A mutation is a mistake put into a file. Each must be found: what nobody finds shows that the worlds, or what is
// looked at in them, have a hole.
type mutation struct {
	name  string
	file  string // from the root of the repository on
	edits []edit
}

// An edit replaces a text that the file has once.
type edit struct{ old, by string }

const (
	fileCommit = "storage/commit/commit.go"
	fileChecks = "storage/commit/checks.go"
	fileGC     = "storage/gc/gc.go"
	fileTable  = "storage/gc/table.go"
	fileLease  = "storage/lease/lease.go"
	fileRun    = "compaction/run.go"
	fileErase  = "compaction/erase.go"
	filePast   = "compaction/erase_history.go"
	fileIngest = "tools/ingest/ingest.go"

	fileRepair   = "storage/repair/apply.go"
	fileRepaired = "storage/commit/op_repair.go"
)

// mutations are the mistakes. The first are those that the first protocols had, in terms of these.
var mutations = []mutation{
	{
		name: "a commit does not look for markers of gc", file: fileChecks,
		edits: []edit{{"if segment.IsCondemned(info.Name) {\n\t\t\treturn condemned(segment)\n\t\t}",
			"if segment.IsCondemned(info.Name) {\n\t\t\tcontinue\n\t\t}"}},
	},
	{
		name: "gc does not fence", file: fileTable,
		edits: []edit{{"s, err := commit.Run(ctx, p.t, commit.Change{Operation: Operation})",
			"s, err := p.t.Latest(ctx)\n\t_ = commit.Run"}},
	},
	{
		name: "gc takes the commit of another for its fence", file: fileTable,
		edits: []edit{{"s, err := commit.Run(ctx, p.t, commit.Change{Operation: Operation})",
			"s, err := p.t.LatestOrNil(ctx)\n\tif err == nil && (s == nil || s.Manifest.Info.Number == p.newest) " +
				"{\n\t\ts, err = commit.Run(ctx, p.t, commit.Change{Operation: Operation})\n\t}"}},
	},
	{
		name: "a commit does not look again after a fence", file: fileCommit,
		edits: []edit{{"if s.Manifest.Info.Operation == Fence {", "if false {"}},
	},
	{
		name: "expiry is judged by the committers' times", file: fileTable,
		edits: []edit{{"\t\tif s.ModTime > p.cutoff {\n\t\t\tcontinue\n\t\t}\n\t\t" +
			"m, err := p.t.Header(ctx, s.Number)\n",
			"\t\tm, err := p.t.Header(ctx, s.Number)\n\t\tif err == nil && m.Info.Time.UnixNano() > p.cutoff " +
				"{\n\t\t\tcontinue\n\t\t}\n"}},
	},
	{
		name: "leases are judged by gc's own clock", file: fileTable,
		edits: []edit{{"return l.Over(p.now, margin) }", "return l.Over(p.t.Store.CommitTime(), margin) }"}},
	},
	{
		name: "a commit trusts the number of the newest snapshot", file: fileCommit,
		edits: []edit{{"switch err = checkBase(ctx, t, cached); {", "switch {"}},
	},
	{
		name: "objects of other tables are taken", file: fileChecks,
		edits: []edit{{"if i.Table() != table {", "if false {"}},
	},
	{
		name: "gc fences before it condemns", file: fileGC,
		edits: []edit{
			{"err := object.Parallel(ctx, object.RequestsAtOnce, len(condemned), func(ctx context.Context, i int) " +
				"error {", "condemn := func() error { return object.Parallel(ctx, object.RequestsAtOnce, " +
				"len(condemned), func(ctx context.Context, i int) error {"},
			{"\t\treturn err\n\t})\n\tif err != nil {\n\t\treturn err\n\t}\n\tplans := slices.",
				"\t\treturn err\n\t}) }\n\tplans := slices."},
			{"err = object.Parallel(ctx, object.RequestsAtOnce, len(plans), func",
				"err := object.Parallel(ctx, object.RequestsAtOnce, len(plans), func"},
			{"\tfor some := range slices.Chunk(groups, removedAtOnce) {",
				"\tif err := condemn(); err != nil {\n\t\treturn err\n\t}\n\t" +
					"for some := range slices.Chunk(groups, removedAtOnce) {"},
		},
	},
	{
		name: "a commit looks for markers before it reads the newest snapshot", file: fileCommit,
		edits: []edit{
			{"\tif err != nil || n.Number == number && n.Size > 0 {\n\t\ta.turns.See(cached)\n\t\treturn err\n\t}\n\t" +
				"return a.read(ctx, n)\n", "\tif err != nil || n.Number == number && n.Size > 0 {\n\t\t" +
				"a.turns.See(cached)\n\t\treturn err\n\t}\n\ta.base, err = t.ReadNewest(ctx, n)\n\treturn err\n"},
		},
	},
	{
		name: "gc does not look again after the fence", file: fileTable,
		edits: []edit{{"\terr = p.history.Walk(ctx, p.newest+1, n)\n", ""}},
	},
	{
		name: "gc deletes snapshots", file: fileTable,
		edits: []edit{{"return p.t.Store.Blobs.Truncate(ctx, s.Info)", "return p.t.Store.Blobs.Delete(ctx, s.Name)"}},
	},
	{
		name: "leases that have run out stay, and none are listed again", file: fileTable,
		edits: []edit{{"if len(p.ended) > 0 && !p.dryRun {", "if false {"}},
	},
	{
		name: "leases are not listed again", file: fileTable,
		edits: []edit{{"if leases, err = lease.Objects(ctx, p.t); err != nil {\n\t\t\treturn err",
			"if err != nil {\n\t\t\treturn err"}},
	},
	{
		name: "a lease is taken without a look whether the snapshot stays", file: fileLease,
		edits: []edit{{"if err := s.Unexpired(ctx); err != nil {", "if err := error(nil); err != nil {"}},
	},
	{
		name: "a lease is renewed without a look at the one before", file: fileLease,
		edits: []edit{{"_, err := l.t.Store.Blobs.Stat(ctx, old.ObjectName(l.t.Table))", "var err error"}},
	},
	{
		name: "a held snapshot is copied after it was truncated", file: fileTable,
		edits: []edit{{"err = p.t.Store.Blobs.PutIfAbsent(ctx, names.PinnedName(p.t.Table, s.Number), b)",
			"if err = p.t.Store.Blobs.Truncate(ctx, s.Info); err == nil {\n\t\t\t\t" +
				"err = p.t.Store.Blobs.PutIfAbsent(ctx, names.PinnedName(p.t.Table, s.Number), b)\n\t\t\t}"}},
	},
	{
		name: "gc lists leases before it reads the newest snapshot", file: fileTable,
		edits: []edit{
			{"\tended  []lease.Object    // leases that have run out\n", "\tended, early []lease.Object\n"},
			{"\tif p.there, err = p.t.List(ctx); err != nil {",
				"\tif p.early, err = lease.Objects(ctx, p.t); err != nil {\n\t\treturn err\n\t}\n\t" +
					"if p.there, err = p.t.List(ctx); err != nil {"},
			{"\tleases, err := lease.Objects(ctx, p.t)\n", "\tleases := p.early\n"},
		},
	},
	{
		name: "a commit takes its own snapshot for another's", file: fileCommit,
		edits: []edit{{"\tctx = context.WithoutCancel(ctx)\n\tours, known, rerr",
			"\tctx = context.WithoutCancel(ctx)\n\tif errors.Is(err, object.ErrExists) {\n\t\treturn errLostRace\n\t" +
				"}\n\tours, known, rerr"}},
	},
	{
		name: "a commit tries again after an error without a look", file: fileCommit,
		edits: []edit{{"\tctx = context.WithoutCancel(ctx)\n\tours, known, rerr",
			"\tctx = context.WithoutCancel(ctx)\n\tif !errors.Is(err, object.ErrExists) {\n\t\treturn errLostRace\n\t" +
				"}\n\tours, known, rerr"}},
	},
	{
		name: "a lost race counts as won", file: fileCommit,
		edits: []edit{{"\tcase !ours:\n\t\treturn errLostRace\n", "\tcase !ours:\n\t\treturn nil\n"}},
	},
	{
		name: "expired snapshots go within the grace period", file: fileTable,
		edits: []edit{{"\t\tif s.ModTime > p.cutoff {\n\t\t\tcontinue\n\t\t}\n\t\tm, err", "\t\tm, err"}},
	},
	{
		name: "gc deletes its markers first", file: fileGC,
		edits: []edit{{"for _, names := range [...][]string{data, markers} {",
			"for _, names := range [...][]string{markers, data} {"}},
	},
	{
		name: "purge does not look at branches", file: fileTable,
		edits: []edit{{"\t\t\tif n < p.whole {\n", "\t\t\tif n < p.whole && !p.purge {\n"}},
	},
	{
		name: "purge does not look at copies that nobody holds", file: fileTable,
		edits: []edit{{"\tcopies, err := p.t.Copies(ctx)\n", "\tcopies, err := []snapshot.Object(nil), error(nil)\n"}},
	},
	{
		name: "gc does not look at branches", file: fileTable,
		edits: []edit{{"\t\t\tif n < p.whole {\n", "\t\t\tif n < p.whole && p.purge {\n"}},
	},
	{
		name: "a commit deletes its runs when it does not know what became of it", file: fileCommit,
		edits: []edit{{"\t\tcommitted = !errors.Is(err, errLostRace)\n", ""}},
	},
	{
		name: "a commit does not look for markers beside sets of rows", file: "storage/commit/checks.go",
		edits: []edit{{"\t\tcase id.IsCondemned(info.Name):\n\t\t\treturn condemned(id)\n", ""}},
	},
	{
		name: "a handle does not know its table", file: "storage/snapshot/log.go",
		edits: []edit{{"\treturn fmt.Errorf(\"table %s: %w: %w since it was opened: open it again\", t.Table, " +
			"catalog.ErrNotFound, ErrReplaced)\n", "\tt.id = of\n\treturn nil\n"}},
	},
	{
		name: "a compaction does not remap rows that were deleted meanwhile", file: "compaction/remap.go",
		edits: []edit{{"\tif !some {\n\t\treturn nil, nil\n", "\tif true {\n\t\treturn nil, nil\n"}},
	},
	{
		name: "a compaction does not say which snapshot it has read", file: fileRun,
		edits: []edit{{"change.Base = b.snap.Info().Number", "change.Base = 1 << 40"}},
	},
	{
		name: "a compaction does not look whether layers were set meanwhile", file: fileRun,
		edits: []edit{{"newest.Info().Number == b.snap.Info().Number || !b.same(now)",
			"newest.Info().Number == b.snap.Info().Number"}},
	},
	{
		name: "a compaction discards its segments when it does not know what became of its commit", file: fileRun,
		edits: []edit{{"if errors.Is(err, storage.ErrConflict) || errors.Is(err, errLeft) {", "if true {"}},
	},
	{
		name: "an erasure says that it is done before it purges", file: fileErase,
		edits: []edit{{"return e.collectGarbage(ctx)", "return nil"}},
	},
	{
		name: "an erasure does not look at leases that were taken meanwhile", file: fileErase,
		edits: []edit{{"if over, err := e.endNewLeases(ctx, r.Held); err != nil || !over {", "if true {"}},
	},
	{
		name: "an erasure does not look at branches that were made meanwhile", file: fileErase,
		edits: []edit{{"if err := e.endNewHolds(ctx, newest); err != nil {", "if err := error(nil); err != nil {"}},
	},
	{
		name: "an erasure does not look at snapshots before the newest", file: fileErase,
		edits: []edit{{"if err := e.lookBack(ctx); err != nil {", "if err := error(nil); err != nil {"}},
	},
	{
		name: "an erasure leaves what another compaction has moved", file: fileErase,
		edits: []edit{{"\t\tif !left {\n\t\t\treturn nil\n", "\t\tif left || !left {\n\t\t\treturn nil\n"}},
	},
	{
		name: "an erasure takes a purge that was interrupted for one that was done", file: filePast,
		edits: []edit{{"if err != nil || info.Size > 0 {", "if err != nil || info.Name == d.Index {"}},
	},
	{
		name: "a commit does not look whether its sources are in the table", file: "storage/commit/op_sources.go",
		edits: []edit{{"if !overwrites || number > e.change.Base {", "if overwrites && false {"}},
	},
	{
		name: "an ingest discards its segments when it does not know what became of its commit", file: fileIngest,
		edits: []edit{{"if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrDuplicateSource) {",
			"if err != nil {"}},
	},
	{
		name: "a repair does not look what was set for its segments meanwhile", file: fileRepaired,
		edits: []edit{{"if err := e.drop(key, old, true); err != nil {",
			"if err := e.drop(key, old, false); err != nil {"}},
	},
	{
		name: "a repair does not say which snapshot it has read", file: fileRepair,
		edits: []edit{{"Base: p.base.Info().Number}}", "Base: 1 << 40}}"}},
	},
	{
		name: "a repair leaves the deletes of what it copies", file: fileRepair,
		edits: []edit{{"set, err := a.bitmap(ctx, deleted, old, made)",
			"set, err := bitmap.Ref{}, error(nil)\n\t_ = deleted"}},
	},
	{
		name: "a repair discards its copies when it does not know what became of its commit", file: fileRepair,
		edits: []edit{{"\t\treturn err // it may have been made",
			"\t\ta.discard(ctx)\n\t\treturn err // it may have been made"}},
	},
	{
		name: "a repair takes what gc has taken meanwhile for damage", file: "storage/repair/repair.go",
		edits: []edit{{"return cmp.Or(p.isSame(ctx), err)", "return err"}},
	},
}
