package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/sst"
)

// The index database lies beside the objects of a local store:
//
//	_index/db/      Pebble
//	_index/in/      tables on their way into it
//	_index/owner    who holds the lock, for messages
//
// It holds every segment's index.sst as it is, and records of its own, whose keys begin with the zero id:
//
//	zero id (16) | 'S' table 00 segment id (16)   number (8 BE): the segment, and the snapshot that added it
//	zero id (16) | 'T' table                      number (8 BE): the newest snapshot that is in
//
// It is rebuildable from the objects and nothing depends on it: commits do not write it and readers do not read it.
const (
	indexDir      = "_index"
	indexDB       = "db"
	indexIn       = "in"
	indexOwner    = "owner"
	segmentRecord = 'S'
	tableRecord   = 'T'

	// indexFormat only ever goes up. This one takes tables of Pebble format v2, which package sst writes.
	indexFormat = pebble.FormatVirtualSSTables
	// ingestBatch is how many tables go in at once.
	ingestBatch = 256
)

var (
	// ErrIndexLocked is matched when another process, or another part of this one, has the index database open. The
	// message says who.
	ErrIndexLocked = errors.New("index is in use")
	// ErrNoIndex is matched when the store is not a local directory, and so has no index database.
	ErrNoIndex = errors.New("no index database")
	// ErrIndexIncomplete is matched when the index database lacks the newest segments of some tables, which could not be taken in. What the message
	// does not name is up to date.
	ErrIndexIncomplete = errors.New("not all tables are in the index database")
)

// An Index is the open index database of a local store. One process at a time has it open. Safe for concurrent use.
type Index struct {
	s     *Store
	local *object.Local
	fs    vfs.FS
	dir   string
	lock  *pebble.Lock
	db    *pebble.DB
	log   *fatalLog
}

// OpenIndex opens the index database of a store, and makes it when there is none. The caller closes it soon: while it is
// open, others get ErrIndexLocked.
func OpenIndex(ctx context.Context, s *Store) (*Index, error) { return openIndex(ctx, s, false) }

// RebuildIndex makes the index database anew from the objects. With ErrIndexIncomplete, too, nothing is left in it of what it held before.
func RebuildIndex(ctx context.Context, s *Store) error {
	x, err := openIndex(ctx, s, true)
	if err != nil {
		return err
	}
	return errors.Join(x.Sync(ctx), x.Close())
}

// SyncIndex brings the index database up to date with the snapshots, making it when there is none. Its cost is that of
// what is new.
func SyncIndex(ctx context.Context, s *Store) error {
	x, err := openIndex(ctx, s, false)
	if err != nil {
		return err
	}
	return errors.Join(x.Sync(ctx), x.Close())
}

func openIndex(ctx context.Context, s *Store, anew bool) (_ *Index, err error) {
	if err := errors.Join(ctx.Err(), s.ready(ctx)); err != nil {
		return nil, err
	}
	local := object.AsLocal(s.blobs)
	if local == nil {
		return nil, fmt.Errorf("store %s: %w: only a local directory has one", s.blobs.URI(), ErrNoIndex)
	}
	x := &Index{s: s, local: local, fs: local.FS(), log: new(fatalLog)}
	x.dir = x.fs.PathJoin(local.Root(), indexDir)
	db := x.fs.PathJoin(x.dir, indexDB)
	if err := x.fs.MkdirAll(db, 0o755); err != nil {
		return nil, fmt.Errorf("index %s: %w", x.dir, err)
	}
	if x.lock, err = pebble.LockDirectory(db, x.fs); err != nil {
		return nil, fmt.Errorf("index %s: %w by %s (%v)", x.dir, ErrIndexLocked, x.owner(), err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.lock.Close())
		}
	}()
	x.sign()
	if anew {
		if err := errors.Join(x.empty(db), x.fs.RemoveAll(x.fs.PathJoin(x.dir, indexIn))); err != nil {
			return nil, fmt.Errorf("index %s: %w", x.dir, err)
		}
	}
	err = x.guard(func() (err error) {
		x.db, err = pebble.Open(db, &pebble.Options{
			FS: x.fs, Lock: x.lock, FormatMajorVersion: indexFormat, Logger: x.log, LoggerAndTracer: nil,
			MaxOpenFiles: 512,
		})
		return err
	})
	if err != nil {
		if x.db != nil {
			err = errors.Join(err, x.guard(x.db.Close))
		}
		return nil, err
	}
	return x, nil
}

// pebbleFile matches the names of Pebble's files, but that of its lock.
var pebbleFile = regexp.MustCompile(`^(CURRENT(\.\d+\.dbtmp)?|(MANIFEST|OPTIONS|REMOTE-OBJ-CATALOG)-\d+|temporary\.\d+\.dbtmp|\d+(-\d+)?\.(log|sst|blob)|marker\..+)$`)

// empty removes everything of the database but its lock. What Pebble would not have made stays, and does not trouble it.
func (x *Index) empty(db string) error {
	names, err := x.fs.List(db)
	if err != nil {
		return err
	}
	for _, n := range names {
		if !pebbleFile.MatchString(n) {
			continue
		}
		if err := x.fs.Remove(x.fs.PathJoin(db, n)); err != nil {
			return err
		}
	}
	return nil
}

// sign writes who holds the lock. It is for messages only.
func (x *Index) sign() {
	f, err := x.fs.Create(x.fs.PathJoin(x.dir, indexOwner), vfs.WriteCategoryUnspecified)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "process %d since %s", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
}

func (x *Index) owner() string {
	f, err := x.fs.Open(x.fs.PathJoin(x.dir, indexOwner))
	if err != nil {
		return "another process"
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 100))
	if err != nil || len(b) == 0 || !strings.HasPrefix(string(b), "process ") {
		return "another process"
	}
	return fmt.Sprintf("%.100q", b)
}

// fatalLog drops Pebble's messages. Pebble calls Fatalf, on any goroutine, when it can no longer write, as on a full disk,
// and would have the process end. Only the index is affected: the first such message is kept, every call of Index after it
// returns it, and the database is not asked for more.
type fatalLog struct{ first atomic.Pointer[error] }

func (*fatalLog) Infof(string, ...any)  {}
func (*fatalLog) Errorf(string, ...any) {}
func (l *fatalLog) Fatalf(f string, args ...any) {
	message, _, _ := strings.Cut(fmt.Sprintf(f, args...), "\n") // stack traces follow
	err := errors.New(message)
	l.first.CompareAndSwap(nil, &err)
}

// failed returns the first fatal message, nil when there was none.
func (l *fatalLog) failed() error {
	if p := l.first.Load(); p != nil {
		return *p
	}
	return nil
}

// Close closes the database.
func (x *Index) Close() error {
	return errors.Join(x.guard(x.db.Close), x.lock.Close())
}

// guard runs a call of Pebble that may write. Where Pebble does not call Fatalf it panics with the error of the disk. A panic of the runtime is
// no disk's: it is a defect, and goes on.
func (x *Index) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if defect, ok := p.(runtime.Error); ok {
				panic(defect)
			}
			x.log.Fatalf("%v", p)
		}
		err = x.damaged(errors.Join(err, x.log.failed()))
	}()
	return f()
}

// damaged adds to an error of the database which it is and what to do about it.
func (x *Index) damaged(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("index database %s: %w; dsi index rebuild makes it anew from the objects", x.dir, err)
}

func (x *Index) segmentPrefix(table string) []byte {
	return append(append(append(make([]byte, 16), segmentRecord), table...), 0)
}

// tableKey ends in the table's id: what is known of a table that was removed says nothing of another of its name.
func (x *Index) tableKey(table string, of tableID) []byte {
	return append(append(append(make([]byte, 16), tableRecord), table...), of[:]...)
}

// has returns the number under a record's key, 0 when there is none.
func (x *Index) number(key []byte) (uint64, error) {
	v, closer, err := x.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, x.damaged(err)
	}
	defer closer.Close()
	if len(v) != 8 {
		return 0, x.damaged(corrupt(indexDir, "record is malformed"))
	}
	return binary.BigEndian.Uint64(v), nil
}

// Sync takes in the segments of snapshots that are not in yet. A table that is damaged is in nobody else's way: ErrIndexIncomplete.
func (x *Index) Sync(ctx context.Context) error {
	tables, err := x.s.Tables(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range tables {
		err := x.syncTable(ctx, &Table{s: x.s, name: name})
		switch {
		case err == nil:
		case ctx.Err() != nil || x.log.failed() != nil:
			return fmt.Errorf("index of table %s: %w", name, err)
		default:
			failed = append(failed, fmt.Errorf("table %s: %w", name, err))
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%w: %w", ErrIndexIncomplete, errors.Join(failed...))
	}
	return nil
}

func (x *Index) syncTable(ctx context.Context, t *Table) error {
	last, err := t.latest(ctx)
	if err != nil {
		return err
	}
	if last == nil {
		return corrupt(tableDir(t.name)+snapshotsDir, "the table has no snapshot")
	}
	record, newest := x.tableKey(t.name, last.m.table), last.m.info.Number
	have, err := x.number(record)
	if err != nil {
		return err
	}
	if have > newest {
		return x.damaged(fmt.Errorf("holds snapshot %d, the table has %d", have, newest))
	}
	if have == newest {
		return nil
	}
	type added struct {
		d      SegmentDescriptor
		number uint64
	}
	var todo []added
	seen := map[string]bool{}
	note := func(d SegmentDescriptor, number uint64) {
		if number > have && !seen[d.ID] {
			seen[d.ID] = true
			todo = append(todo, added{d, number})
		}
	}
	h := history{t: t, shown: func(obj string, kind treeKind, key, value []byte) error {
		if kind != listingTree || len(key) == 0 {
			return nil
		}
		switch key[0] {
		case partitionSpace:
			p, d, reason := parseSegment(key, value)
			if reason != "" {
				return corrupt(obj, reason)
			}
			note(d, p.added)
		case layerSpace:
			l, reason := parseLayer(key, value, obj)
			if reason != "" {
				return corrupt(obj, reason)
			}
			note(l.Data, l.Since)
		}
		return nil
	}}
	if err := h.walk(ctx, max(have+1, last.m.info.Oldest, 1), newest); err != nil {
		return err
	}
	for len(todo) > 0 {
		n := min(len(todo), ingestBatch)
		var paths []string
		batch := x.db.NewBatch()
		for _, a := range todo[:n] {
			path, err := x.take(ctx, a.d)
			if err != nil {
				batch.Close()
				return err
			}
			paths = append(paths, path)
			segment, err := parseID(a.d.ID)
			if err != nil {
				batch.Close()
				return err
			}
			key := append(x.segmentPrefix(t.name), segment[:]...)
			if err := batch.Set(key, binary.BigEndian.AppendUint64(nil, a.number), nil); err != nil {
				batch.Close()
				return err
			}
		}
		// Ingested first: a segment's record says that it is in.
		err := x.guard(func() error { return x.db.Ingest(ctx, paths) })
		if err == nil {
			err = x.guard(func() error { return batch.Commit(pebble.Sync) })
		}
		if err := errors.Join(err, batch.Close()); err != nil {
			return err
		}
		todo = todo[n:]
	}
	return x.guard(func() error {
		return x.db.Set(record, binary.BigEndian.AppendUint64(nil, newest), pebble.Sync)
	})
}

// take checks a segment's index.sst and copies it to where Pebble takes it over from: no file of
// the database is a file of an object.
func (x *Index) take(ctx context.Context, d SegmentDescriptor) (string, error) {
	segment, err := parseID(d.ID)
	if err != nil {
		return "", err
	}
	if err := x.check(ctx, d, segment); err != nil {
		return "", err
	}
	from, err := x.local.Path(d.Index)
	if err != nil {
		return "", err
	}
	in := x.fs.PathJoin(x.dir, indexIn)
	if err := x.fs.MkdirAll(in, 0o755); err != nil {
		return "", fmt.Errorf("index %s: %w", x.dir, err)
	}
	to := x.fs.PathJoin(in, d.ID+".sst")
	// What an interrupted run left.
	if err := x.fs.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("index %s: %w", x.dir, err)
	}
	if err := vfs.Copy(x.fs, from, to); err != nil {
		return "", fmt.Errorf("index %s: %w", x.dir, err)
	}
	return to, nil
}

// check reads a whole index.sst with our own reader, so that Pebble gets no damaged table, nor one whose keys are
// another segment's.
func (x *Index) check(ctx context.Context, d SegmentDescriptor, segment id) error {
	r, err := x.s.openTable(ctx, d.Index, d.IndexSize, sst.Fetch{})
	if err != nil {
		return err
	}
	return everyKeyOf(ctx, r, d.Index, segment)
}

func everyKeyOf(ctx context.Context, r *sst.Reader, object string, segment id) error {
	it := r.Iter(nil)
	for ok := it.SeekGE(ctx, nil); ok; ok = it.Next(ctx) {
		if !bytes.HasPrefix(it.Key(), segment[:]) {
			return corrupt(object, "holds keys of another segment")
		}
	}
	return it.Err()
}
