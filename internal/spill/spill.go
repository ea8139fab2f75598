// Package spill is what external sorts are made of: files for what does not fit in memory, runs that are merged as they
// come, and the merge of sorted streams. It holds the collector to the memory that was asked for, too. The rows of an
// ingest (package writer) and the rows that overlays join (tools/overlay) are sorted with it; each brings its own form
// of a run.
//
//	Dir ──> directory ── Create ──> File, unlinked ── Append, ReadBlock ── Close ──> gone
//
//	sorted buffer ──> run ── Runs.Add ──(fan-in runs of a level)── Merge ──> run of the next level
//	                                        Runs.All ── Merge ──> one Stream in order
//
// The files have no name: the system frees them when the process ends, in whatever way.
package spill

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/dsistore/dsistore/storage/object"
)

// Prefix begins the names of spill files. Each is unlinked as soon as it is open: a name is seen only if the process
// died between the two steps.
const Prefix = "ingest-spill-"

// Dir returns the directory for spill files, made if need be: the one asked for; else one in the store where that is
// a local directory; else the system's. Names that killed processes left there are removed.
func Dir(asked string, blobs object.Store) (string, error) {
	dir := asked
	if dir == "" {
		dir = os.TempDir()
		if local := object.AsLocal(blobs); local != nil {
			dir = filepath.Join(local.Root(), "_tmp")
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	removeStale(dir)
	return dir, nil
}

// removeStale removes names that killed processes left in dir. Taking the name of one that is just being made does no
// harm: its owner was about to. A name that cannot be removed stays: in a directory for all users it may be another's.
func removeStale(dir string) {
	names, _ := filepath.Glob(filepath.Join(globEscape(dir), Prefix+"*")) // no error: the pattern is well formed
	for _, name := range names {
		_ = os.Remove(name)
	}
}

func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}
