// Package storage is the store: tables, snapshots, segments, commits and the index.
package storage

// STUB: the signatures; the storage owner replaces this file.

import (
	"context"
	"errors"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/object"
)

var errStub = errors.New("storage: not built yet")

var (
	// ErrNotFound is matched when a table, snapshot or feature does not exist (message names the nearest).
	ErrNotFound = errors.New("not found")
	// ErrConflict is matched when a commit lost a race to one that it does not commute with.
	ErrConflict = errors.New("commit conflict")
	// ErrDuplicateSource is matched when a change adds a source that the table already holds.
	ErrDuplicateSource = errors.New("source already ingested")
)

// A FeatureID names a feature for ever: the 64-bit hash of its first name and generation, so that writers who never met
// give one feature one id. A feature dropped and added again has the next generation. Never 0.
type FeatureID uint64

func NewFeatureID(name string, generation uint32) FeatureID { return 0 }

// Role says what a feature is for.
type Role uint8

const (
	RoleFeature    Role = 0
	RoleLabel      Role = 1
	RoleSessionKey Role = 2
	RoleRequestKey Role = 3
	RoleUserKey    Role = 4
	RoleTimeKey    Role = 5
)

// A Feature is one entry of a table's schema.
type Feature struct {
	ID         FeatureID
	Name       string
	Generation uint32
	Type       vector.Type
	Role       Role
	// Logical is the Arrow type that an export restores where Type alone does not say it: "timestamp[us, tz=UTC]",
	// "date32[day]", "decimal128(10, 2)", "float16", "fixed_size_binary[16]", ... Empty: Type says all.
	Logical string
	// OriginColumn and OriginKey are set on features that came out of a map or struct column: export can fold them back.
	OriginColumn, OriginKey string
	// Nullable etc. are not stored: presence says it.
}

// A Partition is an ordered list of key=value. Null is Hive's default partition. String is the canonical escaped form
// "ds=2026-11-01/hr=03"; the empty Partition is "".
type Partition []PartitionValue

type PartitionValue struct {
	Key   string
	Value string
	Null  bool
}

func (p Partition) String() string               { return "" }
func ParsePartition(s string) (Partition, error) { return nil, errStub }

// A SegmentDescriptor says all that a commit needs to know of a segment; it has a stable encoding and is small.
type SegmentDescriptor struct {
	ID        string // 32 hex digits, random: names start with a hash
	Partition Partition
	Rows      uint64
	Bytes     uint64 // of all its objects
	Features  uint32
	Index     string // object name of index.sst
	IndexSize uint64
	Objects   []ObjectRef // packs and single feature files
}

type ObjectRef struct {
	Name string
	Size uint64
}

// A Source identifies something ingested, so that the same is not ingested twice.
type Source struct {
	Fingerprint string // content hash, hex
	Name        string // path or "stdin", for messages
}

// Options: the zero value works.
type Options struct {
	Limits format.Limits
	Now    func() time.Time
}

type Store struct{}

// Open opens the store at the root that blobs stand for. It takes no lock and does not touch the Pebble database.
func Open(ctx context.Context, blobs object.Store, opts Options) (*Store, error) { return nil, errStub }
func (s *Store) Blobs() object.Store                                             { return nil }
func (s *Store) Tables(ctx context.Context) ([]string, error)                    { return nil, errStub }

// Table returns a table that exists (ErrNotFound names the nearest).
func (s *Store) Table(ctx context.Context, name string) (*Table, error) { return nil, errStub }

// NewTable returns a table that its first Commit creates, or the one that exists.
func (s *Store) NewTable(ctx context.Context, name string) (*Table, error) { return nil, errStub }
func (s *Store) Close() error                                              { return nil }

type Table struct{}

func (t *Table) Name() string { return "" }

// Store returns the store that the table is in.
func (t *Table) Store() *Store                                             { return nil }
func (t *Table) Latest(ctx context.Context) (*Snapshot, error)             { return nil, errStub } // ErrNotFound before the first commit
func (t *Table) At(ctx context.Context, number uint64) (*Snapshot, error)  { return nil, errStub }
func (t *Table) AsOf(ctx context.Context, at time.Time) (*Snapshot, error) { return nil, errStub }
func (t *Table) Snapshots(ctx context.Context) ([]SnapshotInfo, error)     { return nil, errStub }

// SnapshotInfo is what `dsi snapshots` prints.
type SnapshotInfo struct {
	Number                 uint64
	Time                   time.Time
	Operation              string // ingest, overwrite, ...
	Rows                   uint64 // in the whole snapshot
	Segments               uint64
	Bytes                  uint64
	Features               uint64
	AddedRows, RemovedRows uint64
}

// A Snapshot is an immutable version of a table.
type Snapshot struct{}

func (s *Snapshot) Info() SnapshotInfo { return SnapshotInfo{} }
func (s *Snapshot) Table() *Table      { return nil }

// Lookup returns the named features, reading only what they need; an unknown name gives ErrNotFound with the nearest.
func (s *Snapshot) Lookup(ctx context.Context, names ...string) ([]Feature, error) {
	return nil, errStub
}

// Features returns the whole schema in name order: its cost is the schema's.
func (s *Snapshot) Features(ctx context.Context) ([]Feature, error) { return nil, errStub }

// Segments returns the segments whose partition matches (nil: all), in partition order then commit order: the canonical
// row order of the snapshot.
func (s *Snapshot) Segments(ctx context.Context, match func(Partition) bool) ([]SegmentDescriptor, error) {
	return nil, errStub
}
func (s *Snapshot) Partitions(ctx context.Context) ([]Partition, error) { return nil, errStub }
func (s *Snapshot) HasSource(ctx context.Context, fingerprint string) (bool, error) {
	return false, errStub
}

// OpenSegment opens a segment's index.
func (s *Snapshot) OpenSegment(ctx context.Context, d SegmentDescriptor) (*Segment, error) {
	return nil, errStub
}

// A Segment is an open segment index. Safe for concurrent use.
type Segment struct{}

// StripeRows returns the rows of each stripe, the same for every feature of the segment. Borrowed for ever: do not write.
func (g *Segment) StripeRows() []uint32 { return nil }

// A FeatureEntry says where a feature file of a segment is and what is in it.
type FeatureEntry struct {
	Object string // blob name
	Offset uint64 // of the feature file in it
	Length uint64
	Meta   *format.FileMeta
}

// Lookup returns the entries of the given features in order; nil where the segment does not have the feature. The
// entries of dedup groups (Meta.Group) are looked up the same way.
func (g *Segment) Lookup(ctx context.Context, ids ...FeatureID) ([]*FeatureEntry, error) {
	return nil, errStub
}

// Entries returns all entries, in id order.
func (g *Segment) Entries(ctx context.Context) ([]*FeatureEntry, error) { return nil, errStub }
func (g *Segment) Close() error                                         { return nil }

// SegmentOptions: the zero value works.
type SegmentOptions struct {
	PackBytes       int64 // target size of a pack; default 128 MiB
	StandAloneBytes int64 // a feature file this large is an object of its own; default 16 MiB
}

// NewSegment starts a segment of the partition whose stripes have the given rows. It needs no coordination.
func (t *Table) NewSegment(ctx context.Context, p Partition, stripeRows []uint32, opts SegmentOptions) (*SegmentWriter, error) {
	return nil, errStub
}

// A SegmentWriter writes one segment. AddFeature is safe for concurrent use.
type SegmentWriter struct{}

// AddFeature writes one feature: write is called with a format.Writer and writes every stripe. order is the feature's
// place in the packs, 0 first; every order from 0 up to the last must be added exactly once before Finish, and the bytes
// laid down do not depend on the calls' timing. A feature that is null in every row may be left out with Skip.
func (w *SegmentWriter) AddFeature(ctx context.Context, order int, f Feature, write func(*format.Writer) error) error {
	return errStub
}
func (w *SegmentWriter) Skip(order int) {}
func (w *SegmentWriter) Finish(ctx context.Context) (SegmentDescriptor, error) {
	return SegmentDescriptor{}, errStub
}
func (w *SegmentWriter) Abort() {}

// A Change is what one commit does.
type Change struct {
	Operation string
	Features  []Feature // the features of the added segments: new ones are added, known ones are widened
	Add       []SegmentDescriptor
	Remove    []string    // segment ids that must still be there
	Overwrite []Partition // every segment of these partitions is replaced
	Sources   []Source
	Base      uint64 // the snapshot the change was made against; 0: none
}

// Commit makes the next snapshot, rebasing over concurrent commits that commute; else ErrConflict.
func (t *Table) Commit(ctx context.Context, c Change) (*Snapshot, error) { return nil, errStub }
