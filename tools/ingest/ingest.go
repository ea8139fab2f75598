package ingest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/spill"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/writer"
	"golang.org/x/sync/errgroup"
)

// Run ingests what paths hold into a table, which it makes if need be, as one commit, and says what it did. On any
// error, and when ctx ends first, the table is as it was and the Report says how far it came.
func Run(ctx context.Context, store *storage.Store, table string, paths []string, opts Options) (Report, error) {
	if err := opts.Validate(); err != nil {
		return Report{Table: table}, err
	}
	opts = opts.withDefaults()
	t, err := store.NewTable(ctx, table)
	if err != nil {
		return Report{Table: table}, err
	}
	bad := &quarantine{path: opts.BadRowReport, numbered: opts.NumberReports}
	if err := bad.check(); err != nil {
		return Report{Table: table}, err
	}
	var e *engine
	from := sourceOptions(&opts, bad)
	from.Known = func() []catalog.Feature { return e.state.features }
	from.PartitionKeys = func() []string { return keysOf(e.state.partition) }
	from.Inferred = func(i source.Inferred) { e.inferred(i) }
	from.LeftOut = func(path string) bool { return e.known[path] }
	from.TempDir = sync.OnceValues(func() (string, error) { return spill.Dir(opts.TempDir, store.Blobs()) })
	files, err := source.Discover(ctx, paths, from)
	if err != nil {
		return Report{Table: table}, err
	}
	again := func(ctx context.Context, leftOut map[string]bool) ([]source.File, error) {
		from.LeftOut = func(path string) bool { return leftOut[path] || e.known[path] }
		files, err := source.Discover(ctx, paths, from)
		return slices.DeleteFunc(files, func(f source.File) bool { return e.known[f.Path] }), err
	}
	e = newEngine(opts, files, tableTarget{writer.ToTable(t, opts.Memory), t}, bad)
	e.dir, e.rediscover = from.TempDir, again
	e.report.Table = table
	return e.run(ctx)
}

func sourceOptions(o *Options, bad *quarantine) source.Options {
	s := source.Options{
		Format: o.Format, MappingFile: o.MappingFile, DDLFile: o.DDLFile,
		SessionKey: o.SessionKey, TimeKey: o.TimeKey,
		ChunkBytes: chunkShare(o.Memory, o.Workers), Threads: o.Workers, Stdin: o.Stdin,
		Records: o.Records, PageBytes: pageShare(o.Memory, o.Workers), StorageOptions: o.SourceOptions,
	}
	if o.PartitionBy != "" {
		s.PartitionBy = []string{o.PartitionBy}
	}
	if o.OnBadRow == BadRowQuarantine {
		s.OnBadRow = bad.badRow
	}
	return s
}

func newEngine(opts Options, files []source.File, t target, bad *quarantine) *engine {
	return &engine{
		opts: opts, files: files, target: t, bad: bad,
		prints: make([]string, len(files)), fileOf: make([]fileState, len(files)),
		partOf: map[string]uint32{}, known: map[string]bool{}, progress: progress{tell: opts.Progress},
	}
}

// run does the ingest and frees everything but the objects that it committed.
func (e *engine) run(ctx context.Context) (Report, error) {
	start := time.Now()
	release := spill.HoldMemory(e.opts.Memory)
	defer release()
	err := e.phases(ctx)
	if e.sorter != nil {
		spills := e.sorter.Spills()
		e.report.Spills, e.report.SpillBytes, e.report.Seconds.Spill = spills.Count, spills.Bytes, spills.Seconds
		e.sorter.Close()
	}
	if berr := e.bad.close(); err == nil {
		err = berr
	}
	e.report.BadRows, e.report.BadFiles, e.report.BadReport = e.bad.rows, len(e.bad.left), e.bad.made
	since(&e.report.Seconds.Total, start)
	return e.report, err
}

func (e *engine) phases(ctx context.Context) error {
	at := time.Now()
	err := e.check(ctx)
	at = since(&e.report.Seconds.Check, at)
	if err != nil {
		return err
	}
	if len(e.files) == 0 { // all were ingested before
		e.report.Snapshot = e.state.number
		return nil
	}
	err = e.read(ctx)
	at = since(&e.report.Seconds.Read, at)
	if err != nil {
		return err
	}
	if e.nothingNew() {
		e.report.Snapshot = e.state.number
		return nil
	}
	segments, err := e.write(ctx)
	at = since(&e.report.Seconds.Write, at)
	if err != nil {
		e.target.Discard(ctx, segments)
		return err
	}
	err = e.commit(ctx, segments)
	since(&e.report.Seconds.Commit, at)
	if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrDuplicateSource) {
		// Refused for certain. After any other error the snapshot may be there all the same: its objects stay.
		e.target.Discard(ctx, segments)
	}
	e.report.Committed = err == nil
	return err
}

// check finds out what can be known before any work: that there is something to ingest, and that it is new.
func (e *engine) check(ctx context.Context) error {
	if len(e.files) == 0 {
		return errors.New("nothing to ingest: no file with data in it; files whose names begin with _ or . do not " +
			"count")
	}
	if !e.opts.NewOnly && len(e.files) > writer.MaxSources { // else they are counted when it is known which are new
		return tooMany(len(e.files))
	}
	if i := slices.IndexFunc(e.files, func(f source.File) bool { return f.Size < 0 }); i >= 0 && e.opts.NewOnly {
		return fmt.Errorf("%s: new only is for files: whether a stream was ingested before shows when it has been read",
			e.files[i].Path)
	}
	var err error
	if e.state, err = e.target.latest(ctx); err != nil {
		return err
	}
	if err := e.setProfile(); err != nil {
		return err
	}
	e.begin()
	for i := range e.files {
		e.report.BytesIn += max(e.files[i].Size, 0)
	}
	e.report.Files, e.report.Added, e.report.Widened, e.report.Valueless = len(e.files), []string{},
		[]string{}, []string{}
	e.report.Missing = []string{}
	e.progress.start(PhaseCheck, e.report.BytesIn)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(e.opts.Workers)
	for i := range e.files {
		if e.files[i].Size >= 0 {
			g.Go(func() error { return e.checkSource(gctx, i) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	e.leaveOutKnown()
	if len(e.files) > writer.MaxSources {
		return tooMany(len(e.files))
	}
	return e.findChanged(ctx)
}

// findChanged counts the new files whose paths were ingested before, with other bytes.
func (e *engine) findChanged(ctx context.Context) error {
	if !e.opts.NewOnly || len(e.files) == 0 || e.state.eachSource == nil {
		return nil
	}
	known := make(map[string]bool, len(e.files))
	for _, f := range e.files {
		known[f.Path] = false
	}
	err := e.state.eachSource(ctx, func(name string) {
		if _, ok := known[name]; ok {
			known[name] = true
		}
	})
	for _, f := range e.files {
		if known[f.Path] {
			e.report.Changed++
			e.report.FirstChanged = cmp.Or(e.report.FirstChanged, f.Path)
		}
	}
	return err
}

func tooMany(files int) error {
	return fmt.Errorf("%d files in one ingest: want at most %d", files, writer.MaxSources)
}

// leaveOutKnown takes the files out that were ingested before.
func (e *engine) leaveOutKnown() {
	if len(e.known) == 0 {
		return
	}
	all, prints, states := e.files, e.prints, e.fileOf
	e.files, e.prints, e.fileOf = nil, nil, nil
	for i, f := range all {
		if e.known[f.Path] {
			e.report.Known++
			e.report.BytesIn -= max(f.Size, 0)
			continue
		}
		e.files, e.prints, e.fileOf = append(e.files, f), append(e.prints, prints[i]), append(e.fileOf, states[i])
	}
	e.report.Files = len(e.files)
}

// begin makes what reading fills.
func (e *engine) begin() {
	e.schema = newSchema(e.state.features, e.state.taken)
	write := e.opts.Options
	write.Profile = e.report.Profile
	e.sorter = writer.NewSorter(write, e.dir, e.schema.types)
	for i := range e.files {
		e.files[i].Partition = source.OrderPartition(e.files[i].Partition, keysOf(e.state.partition))
	}
}

// setProfile takes the profile that was asked for, else the table's.
func (e *engine) setProfile() error {
	e.report.Profile = cmp.Or(e.opts.Profile, e.state.profile, "balanced")
	if _, err := format.ParseProfile(e.report.Profile); err != nil {
		return fmt.Errorf("the table's %w: give one", err)
	}
	return nil
}

// checkSource computes a file's fingerprint, and refuses what the table has, or notes it where it is to be left out.
func (e *engine) checkSource(ctx context.Context, number int) error {
	f := &e.files[number]
	content, err := f.Fingerprint(ctx)
	if err != nil {
		return e.fileError(ctx, number, err)
	}
	print := sourcePrint(content, f.Partition)
	e.prints[number] = print
	e.mu.Lock()
	e.progress.add(0, max(f.Size, 0))
	e.mu.Unlock()
	if e.opts.Overwrite {
		return nil
	}
	have, err := e.state.hasSource(ctx, print)
	if err != nil {
		return err
	}
	if have && e.opts.NewOnly {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.known[f.Path] = true
		return nil
	}
	if have {
		known := &KnownSourceError{Path: f.Path, Stream: f.Size < 0}
		if p := e.state.partition; p != nil && len(p) == 0 {
			known.Table, known.Rows = true, e.state.rows
		}
		return known
	}
	return nil
}

// sourcePrint tells sources apart: by content, and by the partition that the path gives it, since the same bytes in two
// partitions are two sets of rows.
func sourcePrint(content string, p catalog.Partition) string {
	if len(p) == 0 {
		return content
	}
	where := p.String()
	if len(where) > maxPrintedPartition {
		sum := sha256.Sum256([]byte(where))
		where = hex.EncodeToString(sum[:])
	}
	return content + "@" + where
}

// maxPrintedPartition is the longest partition that a fingerprint, of which the table takes 256 bytes, has as it is.
const maxPrintedPartition = 200

// Errors about two files of one dump, which match storage.ErrDuplicateSource too.
var (
	// ErrSameBytes is matched when they hold the same bytes for the same partition, and Options.TakeCopies is not set.
	ErrSameBytes error = twiceError("the same bytes for the same partition, which would give each of their rows " +
		"twice: leave one of them out")
	// ErrSameFile is matched when they are one file, by the same or by another name.
	ErrSameFile error = twiceError("one and the same file, which would give each of its rows twice: name it once")
)

type twiceError string

func (e twiceError) Error() string { return string(e) }

func (twiceError) Is(target error) bool { return target == storage.ErrDuplicateSource }

// checkSources completes the fingerprints after reading and refuses two files with the same rows, unless copies are
// taken. The fingerprint of a copy has its number.
func (e *engine) checkSources(ctx context.Context) error {
	same := make(map[string][]*source.File, len(e.files)) // by fingerprint
	for i := range e.files {
		f, state := &e.files[i], e.fileOf[i]
		if state.dropped || state.rows == 0 {
			continue
		}
		if e.prints[i] == "" {
			if err := e.checkSource(ctx, i); err != nil {
				return err
			}
			if e.fileOf[i].dropped {
				continue
			}
		}
		print := e.prints[i]
		for _, other := range same[print] {
			if source.SameFile(*other, *f) {
				return fmt.Errorf("%s and %s: %w", other.Path, f.Path, ErrSameFile)
			}
			if !e.opts.TakeCopies {
				return fmt.Errorf("%s and %s: %w", other.Path, f.Path, ErrSameBytes)
			}
		}
		if same[print] = append(same[print], f); len(same[print]) > 1 {
			e.prints[i] = fmt.Sprintf("%s#%d", print, len(same[print]))
		}
	}
	return nil
}

// read brings all rows into the buffer and, where they do not fit, into runs.
func (e *engine) read(ctx context.Context) error {
	for {
		if err := e.readFiles(ctx); err != nil {
			return err
		}
		if again, err := e.readAgain(ctx); err != nil {
			return err
		} else if !again {
			return e.checkRead(ctx)
		}
	}
}

// readFiles reads the files that are not left out.
func (e *engine) readFiles(ctx context.Context) error {
	e.progress.start(PhaseRead, e.report.BytesIn)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(e.opts.Workers)
	for i := range e.files {
		if e.fileOf[i].dropped {
			continue
		}
		g.Go(func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			return e.readFile(gctx, i)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// checkRead finds out whether what was read can be written.
func (e *engine) checkRead(ctx context.Context) error {
	if err := e.bad.flush(); err != nil {
		return err
	}
	dropped := 0
	for _, f := range e.fileOf {
		if f.dropped {
			dropped++
		} else {
			e.report.Rows += f.rows
		}
	}
	if dropped == len(e.files) {
		return e.bad.noFile()
	}
	if e.report.Rows == 0 && e.bad.rows > 0 {
		return e.bad.allBad()
	}
	if e.nothingNew() {
		return nil
	}
	if !slices.ContainsFunc(e.schema.list, (*feature).kept) {
		return fmt.Errorf("nothing to ingest: no column has a value, and so none has a type (files: %d, rows: %d); "+
			"--mapping can say the types", len(e.files), e.report.Rows)
	}
	for name, key := range map[string]*feature{e.opts.SessionKey: e.schema.sessionKey(),
		e.opts.TimeKey: e.schema.timeKey()} {
		if name != "" && (key == nil || !key.kept()) {
			return fmt.Errorf("no file has a value of the key %q", name)
		}
	}
	return e.checkSources(ctx)
}

// commit makes the segments visible.
func (e *engine) commit(ctx context.Context, segments []catalog.SegmentDescriptor) error {
	e.progress.start(PhaseCommit, 0)
	operation := "ingest"
	properties := commit.SetProperties{}
	if e.opts.Profile != "" {
		properties[snapshot.ProfileProperty] = e.opts.Profile
	}
	var (
		features  commit.AddFeatures
		overwrite commit.OverwritePartitions
		sources   commit.AddSources
	)
	for _, f := range e.schema.list {
		if !f.kept() {
			if f.present() {
				e.report.Valueless = append(e.report.Valueless, f.Name)
			} else if k := f.known; k != nil && k.Status == catalog.FeatureActive {
				e.report.Missing = append(e.report.Missing, f.Name)
				if k.Role != catalog.RoleFeature {
					e.report.MissingRoles = append(e.report.MissingRoles, f.Name)
				}
			}
			continue
		}
		stored, widened, err := f.committed()
		if err != nil {
			return err
		}
		features = append(features, stored)
		e.report.Features++
		if f.known == nil {
			e.report.Added = append(e.report.Added, f.Name)
			if f.Generation > 0 {
				e.report.Again = append(e.report.Again, f.Name)
			}
		}
		if widened {
			e.report.Widened = append(e.report.Widened, f.Name)
		}
	}
	slices.Sort(e.report.Added)
	slices.Sort(e.report.Again)
	slices.Sort(e.report.Missing)
	slices.Sort(e.report.MissingRoles)
	slices.Sort(e.report.Valueless)
	slices.Sort(e.report.Widened)
	seen := map[string]bool{}
	for _, s := range segments {
		if name := s.Partition.String(); !seen[name] {
			seen[name] = true
			e.report.Partitions++
			e.report.Partitioned = len(s.Partition) > 0
			if e.opts.Overwrite {
				overwrite = append(overwrite, s.Partition)
			}
		}
		e.report.BytesOut += int64(s.Bytes)
	}
	e.report.Segments = len(segments)
	if e.opts.Overwrite {
		operation = "overwrite"
		var err error
		if e.report.Replaced, err = e.target.replaced(ctx, overwrite); err != nil {
			return err
		}
	}
	for i, f := range e.files {
		if state := e.fileOf[i]; !state.dropped && state.rows > 0 {
			sources = append(sources, catalog.Source{Fingerprint: e.prints[i], Name: f.Path})
		}
	}
	change := commit.Change{
		Operation: operation, Base: e.state.number,
		Ops: []commit.Operation{features, properties, sources, overwrite, commit.AddSegments(segments)},
	}
	if len(segments) > 0 {
		change.Set(e.arranged(keysOf(segments[0].Partition)))
	}
	number, err := e.target.commit(ctx, change)
	if err != nil {
		return err
	}
	e.report.Snapshot = number
	e.progress.add(e.report.Rows, 0)
	return nil
}

// nothingNew reports whether an ingest of new files only, into a table, found no row in them. They are not recorded,
// and are read again by the next one.
func (e *engine) nothingNew() bool { return e.opts.NewOnly && e.state.number > 0 && e.report.Rows == 0 }

// arranged returns by which keys the rows are partitioned and sorted: checkKeys and the schema have held them to those
// of the table as it was when the ingest began.
func (e *engine) arranged(partition []string) commit.Arranged {
	a := commit.Arranged{Partition: partition}
	for _, f := range e.state.features {
		switch f.Role {
		case catalog.RoleSessionKey:
			a.Session = append(a.Session, f.Name)
		case catalog.RoleTimeKey:
			a.Time = append(a.Time, f.Name)
		}
	}
	if f := e.schema.sessionKey(); f != nil {
		a.Session = append(a.Session, f.Name)
	}
	if f := e.schema.timeKey(); f != nil {
		a.Time = append(a.Time, f.Name)
	}
	return a
}
