package report

// Schema is the version of the JSON form of a Report. Keys are added without a new version, and never change meaning.
const Schema = 1

// A Report says of tables what they hold, who reads it, what that costs, and what was saved. Its JSON form is
// documented in docs/reference/dsistat-report.md. Times are RFC 3339 in UTC, days are 2026-11-22, sizes are bytes,
// shares are 0 to 1; lists are never null.
type Report struct {
	Schema int     `json:"schema"`
	Made   string  `json:"made"`
	Store  string  `json:"store"`
	Since  string  `json:"since"` // the first day of which usage records were looked at; empty: all that there are
	Tables []Table `json:"tables"`
	Cost   *Cost   `json:"cost,omitempty"` // of all these tables
}

// A Table is what there is to say of one.
type Table struct {
	Table    string    `json:"table"`
	Summary  Summary   `json:"summary"`
	Savings  Savings   `json:"savings"`
	Curve    Curve     `json:"curve"`
	Features []Feature `json:"features"` // in name order; dropped ones that are still stored, too
	Groups   []Group   `json:"groups"`   // in name order
	Jobs     []Job     `json:"jobs"`     // those that read most bytes first
	Days     []Day     `json:"days"`     // in order, without gaps from the first that has anything to the last
	Health   Health    `json:"health"`
	Advice   []Advice  `json:"advice"` // what saves most first
	Cost     *Cost     `json:"cost,omitempty"`
}

// A Cost is what the service of a store takes for a table, or for several, by a table of prices. A month has 30 days.
type Cost struct {
	Prices   string `json:"prices"` // of what, and as of when
	Currency string `json:"currency"`
	Days     uint64 `json:"days"` // of usage records that the reads are of; the most of any of several tables
	// Reads is what the requests and bytes of those days cost, and ReadsMonth what they would in a month of such days.
	Reads      float64 `json:"reads"`
	ReadsMonth float64 `json:"reads_month"`
	// StoredMonth is what it costs to keep what the newest snapshot has for a month.
	StoredMonth float64 `json:"stored_month"`
}

// A Summary is a table at a glance.
type Summary struct {
	Snapshot     uint64 `json:"snapshot"`
	SnapshotTime string `json:"snapshot_time"`
	Operation    string `json:"operation"`
	Rows         uint64 `json:"rows"`         // that a reader sees
	RowsStored   uint64 `json:"rows_stored"`  // deleted ones too
	Partitions   uint64 `json:"partitions"`   //
	Segments     uint64 `json:"segments"`     //
	Features     uint64 `json:"features"`     // of the schema
	RawBytes     uint64 `json:"raw_bytes"`    // of the values of all rows as plain numbers, in their source's width
	StoredBytes  uint64 `json:"stored_bytes"` // of the segments
	// LayerBytes are of the layers of overlays, beside the segments.
	LayerBytes   uint64  `json:"layer_bytes"`
	BytesPerRow  float64 `json:"bytes_per_row"`
	Ratio        float64 `json:"ratio"` // raw over stored
	DedupeFactor float64 `json:"dedupe_factor"`
	Reads        Reads   `json:"reads"`
	FeaturesRead uint64  `json:"features_read"`
	// BytesReadShare is the share of the features' stored bytes that is of features that were read.
	BytesReadShare float64 `json:"bytes_read_share"`
	LastRead       string  `json:"last_read"` // empty: never
}

// Reads add up what readers did.
type Reads struct {
	Readers       uint64  `json:"readers"`  // that were opened
	Jobs          uint64  `json:"jobs"`     // told apart by name and user
	Rows          uint64  `json:"rows"`     // given, over all epochs
	Batches       uint64  `json:"batches"`  //
	Requests      uint64  `json:"requests"` // that readers asked for, of a cache on the local disk too
	BytesNeeded   uint64  `json:"bytes_needed"`
	BytesUnneeded uint64  `json:"bytes_unneeded"` // fetched between what was needed, and thrown away
	Amplification float64 `json:"amplification"`  // (needed + unneeded) / needed; 0: nothing was read
	// Requests that a service of stores was sent, as often as they were, bytes that it gave, and those that a cache on
	// the local disk gave; 0 of a store on a local disk.
	SentReads   uint64 `json:"sent_reads"`
	SentLists   uint64 `json:"sent_lists"`
	BytesDown   uint64 `json:"bytes_down"`
	BytesCached uint64 `json:"bytes_cached"`
	// Seconds that jobs waited for batches; and, over all threads, of fetching, decoding and assembling.
	StallSeconds    float64 `json:"stall_seconds"`
	ReadSeconds     float64 `json:"read_seconds"`
	DecodeSeconds   float64 `json:"decode_seconds"`
	AssembleSeconds float64 `json:"assemble_seconds"`
	// DedupeFactor is rows per slot of what was decoded, EmittedFactor of what the batches had; 1 without duplicates.
	DedupeFactor  float64 `json:"dedupe_factor"`
	EmittedFactor float64 `json:"emitted_factor"`
}

// A Feature is what there is to say of one. Rows in segments without the feature are null.
type Feature struct {
	ID   string `json:"id"` // 16 hex digits
	Name string `json:"feature"`
	Kind string `json:"kind"`
	Type string `json:"type"`
	Role string `json:"role,omitempty"` // none: a plain feature
	// none: active; dropped: stored and seen by no reader; overlay: only overlays have it
	Status string `json:"status,omitempty"`
	Origin string `json:"origin_column,omitempty"`

	Segments       uint64    `json:"segments"`
	Coverage       float64   `json:"coverage"`    // share of the rows where it is not null
	MeanLength     float64   `json:"mean_length"` // elements of a row that is not null: 1 of dense ones
	Elements       uint64    `json:"elements"`    // over rows
	Distinct       *Distinct `json:"distinct,omitempty"`
	RawBytes       uint64    `json:"raw_bytes"`
	StoredBytes    uint64    `json:"stored_bytes"`          // of its feature files; a group's inverse is the group's
	LayerBytes     uint64    `json:"layer_bytes,omitempty"` // of its files in overlays
	Slots          uint64    `json:"slots"`
	StoredElements uint64    `json:"stored_elements"`
	Partial        uint64    `json:"partial,omitempty"`
	DedupeFactor   float64   `json:"dedupe_factor"`
	Group          string    `json:"group,omitempty"` // name of its Group, in the last segment that has the feature
	// Encodings are those of its first stripe in the last segment; only where they were asked for.
	Encodings []StreamEncoding `json:"encodings,omitempty"`
	// Saved is the chain from RawBytes to StoredBytes, by the names of Cause: they sum to the difference.
	Saved map[string]int64 `json:"saved"`
	// DuplicatesSaved is what the writer estimated that the files would take more with a slot for each row.
	DuplicatesSaved uint64 `json:"duplicates_saved_estimate,omitempty"`
	// StoredMonth is as of Cost, and ReadsMonth the part of the table's that the feature has of the bytes read; both
	// only where the table has a Cost.
	StoredMonth float64 `json:"stored_month,omitempty"`
	ReadsMonth  float64 `json:"reads_month,omitempty"`

	Use
}

// Use is how a feature was read.
type Use struct {
	Readers       uint64 `json:"readers"`
	Jobs          uint64 `json:"jobs"` // told apart by name and user
	Days          uint64 `json:"days"` // on which it was read
	Stripes       uint64 `json:"stripes_read"`
	RowsRead      uint64 `json:"rows_read"` // that were asked for of those stripes
	BytesNeeded   uint64 `json:"bytes_needed"`
	BytesUnneeded uint64 `json:"bytes_unneeded"`       // its part of what its requests fetched for nobody
	FirstRead     string `json:"first_read,omitempty"` // a day
	LastRead      string `json:"last_read,omitempty"`  // a time; none: never
	// UnreadDays since it was last read, or, where it never was, since the first day that usage records are there of,
	// or it came later; none are: 0.
	UnreadDays uint64 `json:"unread_days"`
}

// Distinct bounds how many different values a feature has, from what directories say; a bound that is missing is not
// known.
type Distinct struct {
	AtLeast uint64  `json:"at_least"`
	AtMost  *uint64 `json:"at_most,omitempty"`
}

// A StreamEncoding is how a stream of a stripe is encoded.
type StreamEncoding struct {
	Stream   string `json:"stream"`
	Bytes    uint64 `json:"bytes"`
	Encoding string `json:"encoding"` // as in dict(delta(for:3), for:17)
}

// A Group is features that share one inverse, in one segment or in several that grouped the same features.
type Group struct {
	Group    string   `json:"group"`    // name of its first feature
	Features []string `json:"features"` // names, in order, of the last segment that has the group
	Segments uint64   `json:"segments"`
	Bytes    uint64   `json:"bytes"` // of its inverses
	// SavedBytes are what the other members' inverses would take, as large as the one that they share.
	SavedBytes uint64 `json:"saved_bytes"`
}

// A Job is the readers of one name and user.
type Job struct {
	Job      string   `json:"job"`
	User     string   `json:"user"`
	Programs []string `json:"programs"`
	Purposes []string `json:"purposes"` // read, count, delete, samples, overlay
	Snapshot uint64   `json:"snapshot"` // the newest that it read
	First    string   `json:"first"`    // times
	Last     string   `json:"last"`
	Days     uint64   `json:"days"` // on which it read
	Reads             // Jobs is 1
	Features uint64   `json:"features"` // different ones that it read
	// FeatureShare is their share of the table's features, BytesShare of the features' stored bytes.
	FeatureShare float64 `json:"feature_share"`
	BytesShare   float64 `json:"bytes_share"`
	ReadsMonth   float64 `json:"reads_month,omitempty"` // as of Cost
}

// A Day is what happened on one, in UTC.
type Day struct {
	Day string `json:"day"`
	Reads
	Features uint64 `json:"features"` // different ones that were read
	// TableRows and TableBytes are the table's at the end of the day; nil: the snapshots of that day have expired. 0:
	// it did not exist.
	TableRows  *uint64 `json:"table_rows,omitempty"`
	TableBytes *uint64 `json:"table_bytes,omitempty"`
}

// A Curve says which share of the stored bytes serves which share of the bytes read, when features are taken in the
// order of bytes read for each byte stored.
type Curve struct {
	Points []CurvePoint `json:"points"` // at most 257, from (0, 0) to (1, 1); none: nothing was read
	// Marks are where half, 80 %, 90 %, 95 % and 99 % of the traffic are reached.
	Marks []CurvePoint `json:"marks"`
}

// A CurvePoint is a point of a Curve.
type CurvePoint struct {
	Bytes    float64 `json:"bytes_share"`
	Traffic  float64 `json:"traffic_share"`
	Features uint64  `json:"features"` // how many were taken
}

// The causes of savings, in the order of the chain. docs/reference/dsistat-report.md defines them.
const (
	CauseRuns      = "runs"
	CauseSlots     = "slots"
	CausePartial   = "partial"
	CauseEncodings = "encodings"
	CauseShape     = "shape"
	CauseInverses  = "inverses"
	CauseGroups    = "groups"
	CauseFrames    = "frames"
)

// Savings lead from the source's bytes to those stored. RawBytes - StoredBytes is the sum of the causes, to the
// byte.
type Savings struct {
	RawBytes    uint64  `json:"raw_bytes"`    // Summary.RawBytes
	StoredBytes uint64  `json:"stored_bytes"` // Summary.StoredBytes
	Causes      []Cause `json:"causes"`       // in the order of the chain
	// DuplicatesSaved is what the writers estimated that the files would take more, encoded, with a slot for each row:
	// what runs, slots and partial duplicates are worth on disk.
	DuplicatesSaved uint64 `json:"duplicates_saved_estimate"`

	// What follows is no part of the sum.

	Overlays []OverlaySaving `json:"overlays"`
	Lists    []ListSaving    `json:"sample_lists"`
	Deleted  Waiting         `json:"deleted"` // rows that no reader sees
	Dropped  Waiting         `json:"dropped"` // features that no reader sees
}

// A Cause is a link of the chain.
type Cause struct {
	Cause string `json:"cause"`
	// Bytes are saved; negative: it costs that. Of runs, slots and partial duplicates they are of plain numbers, before
	// encoding: in the order of the writer these come first, so that they get what encodings would have found by
	// themselves too (docs/decisions/0034).
	Bytes int64 `json:"bytes"`
	// EstimatedBytes of them are an estimate: others of the causes have them if it is wrong.
	EstimatedBytes uint64 `json:"estimated_bytes,omitempty"`
	Meaning        string `json:"meaning"`
}

// An OverlaySaving compares an overlay with what it stands for: a copy of the segments that it covers, with its
// features in them.
type OverlaySaving struct {
	Overlay    string `json:"overlay"`
	Bytes      uint64 `json:"bytes"`      // of its layers
	CopyBytes  uint64 `json:"copy_bytes"` // of the segments under them, and its own
	SavedBytes uint64 `json:"saved_bytes"`
	Features   uint64 `json:"features"`
}

// A ListSaving compares a sample list with a copy of its rows. An estimate: rows are taken to be as large as the mean
// of their segment.
type ListSaving struct {
	List       string `json:"sample_list"`
	Rows       uint64 `json:"rows"`
	SavedBytes uint64 `json:"saved_bytes_estimate"`
}

// Waiting is what is stored for nobody until compaction takes it out.
type Waiting struct {
	Count    uint64 `json:"count"` // rows or features
	Segments uint64 `json:"segments"`
	// Bytes: of features exact, of rows an estimate: they are taken to be as large as the mean of their segment.
	Bytes uint64 `json:"bytes"`
}

// Health is what of a table is as it should be, and what is not.
type Health struct {
	Segments  SegmentHealth    `json:"segments"`
	Packs     PackHealth       `json:"packs"`
	Overlays  []OverlayHealth  `json:"overlays"`
	Lists     []ListHealth     `json:"sample_lists"`
	Snapshots SnapshotHealth   `json:"snapshots"`
	Branches  []BranchHealth   `json:"branches"`
	Leases    []LeaseHealth    `json:"leases"`
	Records   UsageHealth      `json:"usage_records"`
	Largest   []SegmentSummary `json:"largest_segments"` // at most 10
	Smallest  []SegmentSummary `json:"smallest_segments"`
}

// SegmentHealth counts segments.
type SegmentHealth struct {
	Count      uint64  `json:"count"`
	MeanRows   float64 `json:"mean_rows"`
	MeanBytes  float64 `json:"mean_bytes"`
	IndexBytes uint64  `json:"index_bytes"`
	// WholeRows and WholeBytes are what compaction makes segments of; Small ones have less than half of both.
	WholeRows  uint64 `json:"whole_rows"`
	WholeBytes uint64 `json:"whole_bytes"`
	Small      uint64 `json:"small"`
	SmallBytes uint64 `json:"small_bytes"` // of them
	// Mergeable are small ones that have another in their partition.
	Mergeable uint64 `json:"mergeable"`
}

// SegmentSummary is one segment.
type SegmentSummary struct {
	Segment   string `json:"segment"`
	Partition string `json:"partition"`
	Rows      uint64 `json:"rows"`
	Deleted   uint64 `json:"rows_deleted"`
	Bytes     uint64 `json:"bytes"`
}

// PackHealth counts the objects that hold feature files.
type PackHealth struct {
	Packs      uint64 `json:"packs"`
	PackBytes  uint64 `json:"pack_bytes"`
	Files      uint64 `json:"files"` // feature files that are objects of their own
	FileBytes  uint64 `json:"file_bytes"`
	WholeBytes uint64 `json:"whole_bytes"` // up to which packs are filled
	// Small packs have less than SmallBelowBytes, and are not the one that was left over beside larger ones.
	Small           uint64 `json:"small"`
	SmallBelowBytes uint64 `json:"small_below_bytes"`
}

// OverlayHealth is an overlay, and how much it covers.
type OverlayHealth struct {
	Overlay  string   `json:"overlay"`
	State    string   `json:"state"` // "", "merged", or "branch b"
	Added    uint64   `json:"added"` // snapshot
	Features []string `json:"features"`
	Segments uint64   `json:"segments"`
	Layers   uint64   `json:"layers"`
	Rows     uint64   `json:"rows"`
	Covered  uint64   `json:"covered"`
	Coverage float64  `json:"coverage"`
	Bytes    uint64   `json:"bytes"`
}

// ListHealth is a sample list.
type ListHealth struct {
	List       string  `json:"sample_list"`
	Definition string  `json:"definition"`
	Added      uint64  `json:"added"`
	Rows       uint64  `json:"rows"`
	Share      float64 `json:"share"` // of the table's rows
}

// SnapshotHealth is what of the history is kept.
type SnapshotHealth struct {
	First  uint64 `json:"first"` // that has not expired
	Newest uint64 `json:"newest"`
	Count  uint64 `json:"count"`
	// AloneBytes are of segments and layers that the newest snapshot, branches and leases do not have: what goes when
	// all older snapshots expire.
	AloneBytes uint64 `json:"alone_bytes"`
	// Skipped: so many of the snapshots after which data was taken away were not looked at, the oldest ones; what they
	// alone hold is missing above.
	Skipped uint64           `json:"skipped"`
	Holding []SnapshotHolder `json:"holding"` // those after which data was taken away, newest first
}

// SnapshotHolder is a snapshot that has data which the next does not have.
type SnapshotHolder struct {
	Snapshot  uint64 `json:"snapshot"`
	Time      string `json:"time"`
	Operation string `json:"operation"`
	Next      string `json:"next_operation"` // that took the data away
	// Bytes go when it expires, and those before it with it.
	Bytes uint64 `json:"bytes"`
}

// BranchHealth is a branch, and what is stored for it alone.
type BranchHealth struct {
	Branch     string   `json:"branch"`
	Owner      string   `json:"owner"`
	Created    string   `json:"created"`
	Snapshots  []uint64 `json:"snapshots"`
	Overlays   []string `json:"overlays"`
	List       string   `json:"sample_list"`
	AloneBytes uint64   `json:"alone_bytes"`
}

// LeaseHealth is a lease, and what is stored for it alone, or for it and others of the same snapshot.
type LeaseHealth struct {
	Owner      string `json:"owner"`
	Snapshot   uint64 `json:"snapshot"`
	Until      string `json:"until"`
	AloneBytes uint64 `json:"alone_bytes"`
}

// UsageHealth is what is known of the usage records.
type UsageHealth struct {
	First string `json:"first"` // the first day that has any; empty: there are none
	Last  string `json:"last"`
	// Records are those that no rollup has yet.
	Records uint64 `json:"records"`
	Rollups uint64 `json:"rollups"`
	// Damaged were passed over; DamagedNames says which and why, of at most 100.
	Damaged      uint64   `json:"damaged"`
	DamagedNames []string `json:"damaged_names"`
}

// The kinds of advice.
const (
	AdviceUnread    = "unread"      // features that nobody read for days
	AdviceRepack    = "repack"      // packs in the order in which features are read
	AdviceMerge     = "merge"       // segments too small
	AdviceCluster   = "cluster"     // segments that have the same sessions, which would share values together
	AdviceDuplicate = "dedup_costs" // a feature whose duplicates cost more than they save
	AdvicePurge     = "purge"       // rows deleted, features dropped
	AdviceExpire    = "expire"      // old snapshots
	AdviceBranch    = "branch"      // a branch or lease that alone holds much
	AdviceOverlay   = "overlay"     // an overlay that covers everything, or hardly anything
	AdviceRecords   = "usage"       // nothing is recorded, records are too young to say what is unread, or damaged
)

// NamedKinds are those that name features.
var NamedKinds = []string{AdviceUnread, AdviceRecords, AdviceDuplicate, AdviceOverlay}

// Advice is something worth doing.
type Advice struct {
	Kind string `json:"kind"`
	Text string `json:"text"` // a sentence with its figures
	// Command does it, or shows more; empty: none does.
	Command string `json:"command,omitempty"`
	// SavedBytes would not be stored, UnneededBytes not be read: estimates where Estimate says so.
	SavedBytes    uint64 `json:"saved_bytes"`
	UnneededBytes uint64 `json:"unneeded_bytes"`
	Estimate      bool   `json:"estimate"`
	// AtLeast and AtMost bound SavedBytes where it is an estimate that can be bounded; both 0: it cannot.
	AtLeast uint64 `json:"saved_bytes_at_least,omitempty"`
	AtMost  uint64 `json:"saved_bytes_at_most,omitempty"`
	// Readers of Jobs on Days are what it rests on, where it rests on usage records.
	Readers uint64 `json:"readers,omitempty"`
	Jobs    uint64 `json:"jobs,omitempty"`
	Days    uint64 `json:"days,omitempty"`
	// Features are those that it is about, those with most bytes first, at most 100; FeatureCount all of them.
	Features     []string `json:"features"`
	FeatureCount uint64   `json:"feature_count"`
}
