package usage

import (
	"cmp"
	"context"
	"maps"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/storage"
)

// Of the environment.
const (
	// OffVariable switches recording off where it is off, no, false or 0.
	OffVariable = "DSISTORE_USAGE"
	// JobVariable is the name of the job.
	JobVariable = "DSISTORE_JOB"
)

// epochWait is how long FlushEpoch waits.
const epochWait = 200 * time.Millisecond

// Off reports whether the environment switches recording off.
func Off() bool {
	switch strings.ToLower(os.Getenv(OffVariable)) {
	case "off", "no", "false", "0":
		return true
	}
	return false
}

// Job returns the name of the job that this process is: JobVariable, else the name of the program.
func Job() string {
	if job := os.Getenv(JobVariable); job != "" {
		return job
	}
	return thisProgram()
}

// thisProgram is the name of the file that runs.
var thisProgram = sync.OnceValue(func() string {
	if len(os.Args) > 0 {
		return filepath.Base(os.Args[0])
	}
	return "unknown"
})

var processID = uint64(os.Getpid())

// thisUser and thisHost are looked up when they are first needed, in the background.
var (
	thisUser = sync.OnceValue(func() string {
		if u, err := user.Current(); err == nil {
			return u.Username
		}
		return cmp.Or(os.Getenv("USER"), "unknown")
	})
	thisHost = sync.OnceValue(func() string {
		host, err := os.Hostname()
		if err != nil {
			return "unknown"
		}
		return host
	})
)

// ProcessTotals are what the Writers of a process have done, for those who watch over it.
type ProcessTotals struct {
	Written uint64 // objects
	Failed  uint64 // writes that went wrong, and were or will be tried again
	Lost    uint64 // records that are in no object, for want of a store that takes them
}

var totals struct{ written, failed, lost atomic.Uint64 }

// Totals returns what the Writers of this process have done.
func Totals() ProcessTotals {
	return ProcessTotals{Written: totals.written.Load(), Failed: totals.failed.Load(), Lost: totals.lost.Load()}
}

// writers are the process's, of those tables that were read lately.
var writers struct {
	mu      sync.Mutex
	byTable map[tableKey]*Writer // guarded by mu
}

type tableKey struct {
	store *storage.Store
	table string
}

// Begin is Writer.Begin of the Writer that all readers of a table share in this process. It writes the rest when the
// store is closed.
func Begin(table *storage.Table, key Key, snapshot uint64, source Source) *Session {
	at := tableKey{table.Store(), table.Name()}
	writers.mu.Lock()
	defer writers.mu.Unlock()
	w := writers.byTable[at]
	if w == nil {
		w, _ = NewWriter(table, Options{}) // the zero value is valid
		if writers.byTable == nil {
			writers.byTable = map[tableKey]*Writer{}
		}
		writers.byTable[at] = w
		forget := at.store.BeforeClose(func() {
			dismiss(at, w, false)
			_ = w.Close(context.Background())
		})
		w.retire = func() {
			if dismiss(at, w, true) {
				forget()
			}
		}
	}
	return w.Begin(key, snapshot, source)
}

// dismiss forgets a Writer, if asked only where it is idle, and reports whether it did.
func dismiss(at tableKey, w *Writer, ifIdle bool) bool {
	writers.mu.Lock()
	defer writers.mu.Unlock()
	if writers.byTable[at] != w || ifIdle && !w.idle() {
		return false
	}
	delete(writers.byTable, at)
	return true
}

// FlushAll writes what this process has not written yet, of all tables at once. A process that ends calls it, or closes
// its stores, which do the same.
func FlushAll(ctx context.Context) { flushAll(ctx, math.MaxInt64) }

// FlushEpoch is FlushAll for a process that may be killed while it waits for more to do, as a worker of a DataLoader is
// between two epochs. It waits epochWait at the most; what is not written then is written in the background.
func FlushEpoch(ctx context.Context) { flushAll(ctx, epochWait) }

func flushAll(ctx context.Context, most time.Duration) {
	writers.mu.Lock()
	all := slices.Collect(maps.Values(writers.byTable))
	writers.mu.Unlock()
	var wg sync.WaitGroup
	for _, w := range all {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, min(most, w.opts.Timeout))
			defer cancel()
			_ = w.Flush(ctx)
		})
	}
	wg.Wait()
}
