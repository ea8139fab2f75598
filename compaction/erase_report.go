package compaction

// An EraseReport says what Erase did, or would do. Its JSON keys are stable.
type EraseReport struct {
	Table    string `json:"table"`
	DryRun   bool   `json:"dry_run"`
	Snapshot uint64 `json:"snapshot"`            // the newest, after Erase
	Rows     uint64 `json:"rows"`                // erased rows that readers saw before
	Deleted  uint64 `json:"rows_deleted_before"` // erased rows that had been deleted before: with a key, or all of them
	// Keys says what became of Erasure.Keys; nil: there were none.
	Keys *KeyReport `json:"keys,omitempty"`
	// Segments of TableSegments were rewritten; they took Bytes of TableBytes. The new segments take BytesMade.
	Segments      uint64   `json:"segments_rewritten"`
	TableSegments uint64   `json:"table_segments"`
	Bytes         uint64   `json:"bytes_rewritten"`
	TableBytes    uint64   `json:"table_bytes"`
	BytesMade     uint64   `json:"bytes_made"`
	Branches      []string `json:"branches_dropped"`
	// Held are branches that may have the rows, of a dry run without DropBranches, and HeldLeases the leases, with
	// their snapshots, of any dry run: Erase returned ErrHeld.
	Held       []string `json:"branches_held,omitempty"`
	HeldLeases []string `json:"leases_held,omitempty"`
	Expired    []uint64 `json:"snapshots_expired"`
	// Expires, of a dry run: all snapshots before would expire, as they may have the rows.
	Expires bool `json:"would_expire,omitempty"`
	// KeepsVersions, of a dry run: the bucket keeps older versions of objects, or may. Those of the table would be
	// removed.
	KeepsVersions bool   `json:"would_remove_versions,omitempty"`
	Removed       uint64 `json:"objects_removed"`
	BytesRemoved  uint64 `json:"bytes_removed"`
	// What a bucket had kept of objects of the table that were deleted or replaced, and Erase has removed.
	Versions     uint64 `json:"versions_removed,omitempty"`
	VersionBytes uint64 `json:"version_bytes_removed,omitempty"`
	// Unnamed counts the objects of the store that no snapshot of any table names, and temporary files. They stay,
	// because an ingest or compaction that is running may commit them. It is not known which rows they have. gc deletes
	// them when they are older than its grace period. UnnamedError says why they could not be counted.
	Unnamed      uint64  `json:"objects_unnamed"`
	UnnamedBytes uint64  `json:"bytes_unnamed"`
	UnnamedError string  `json:"unnamed_error,omitempty"`
	Compaction   *Report `json:"compaction,omitempty"`
	Search       *Search `json:"search,omitempty"` // nil: nothing was searched for
	Seconds      float64 `json:"seconds"`
}

// A KeyReport says which of the keys to erase no row of the newest snapshot has, deleted or not: those that an earlier
// Erase took, those of older snapshots alone, and those that are written in another way in the table. Its JSON keys are
// stable.
type KeyReport struct {
	Feature string `json:"feature"`
	Keys    uint64 `json:"keys"` // distinct ones
	Missing uint64 `json:"missing"`
	// Examples are some of those, at most shownMissing.
	Examples []string `json:"missing_examples"`
}

const shownMissing = 10
