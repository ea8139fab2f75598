package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/internal/spill"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

// childEnv holds the job of a child process: a childJob as JSON.
const childEnv = "DSI_INGEST_TEST_CHILD"

// killsEnv says how many kills TestKilledIngest makes; default 6, and 2 under the race detector.
const killsEnv = "DSI_KILLS"

type childJob struct {
	Store, Dump string
	// KillAt: the child kills itself at the progress call of that number, from 1; 0: it does not.
	KillAt int
	// Memory, when set, replaces that of killOptions, and stripes and segments have the default sizes.
	Memory int64
}

// ingestChild is what a child process does.
func ingestChild(text string) int {
	var job childJob
	err := json.Unmarshal([]byte(text), &job)
	if err == nil {
		err = job.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A childReport is what a child that ends well prints.
type childReport struct {
	Report
	PeakBytes int64 // that the process held in memory, without its program; 0: the system does not say
}

// peakBytes reads the most that this process ever held, without the pages of its program that are mapped now: how many
// those are depends on the test binary and on the system's page cache. (What the parent learns of a child's peak holds
// the parent's own memory.)
func peakBytes() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	field := func(name string) int64 {
		_, rest, _ := strings.Cut(string(status), name+":")
		kib := int64(0)
		_, _ = fmt.Sscanf(rest, "%d kB", &kib)
		return kib << 10
	}
	return max(field("VmHWM")-field("RssFile"), 0)
}

func (j childJob) run() error {
	ctx := context.Background()
	blobs, err := object.NewLocal(j.Store)
	if err != nil {
		return err
	}
	s, err := storage.Create(ctx, blobs, storage.Options{})
	if err != nil {
		return err
	}
	opts := killOptions()
	if j.Memory > 0 {
		opts.Memory, opts.StripeRows, opts.SegmentRows = j.Memory, 0, 0
	}
	calls := 0
	opts.Progress = func(Progress) {
		if calls++; calls == j.KillAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	report, err := Run(ctx, s, "ads", []string{j.Dump}, opts)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(childReport{report, peakBytes()})
	}
	return errors.Join(err, s.Close())
}

func killOptions() Options {
	opts := testOptions()
	opts.Overwrite = true
	return opts
}

// runChild runs a child and kills it after a while, unless it has ended; after 0 it is left alone. It returns how long
// the child ran and whether it was killed.
func runChild(t *testing.T, j childJob, after time.Duration) (took time.Duration, killed bool) {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if after > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, after)
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, os.Args[0]) // which kills with SIGKILL
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	start := time.Now()
	out, err := cmd.CombinedOutput()
	took = time.Since(start)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() &&
			status.Signal() == syscall.SIGKILL {
			return took, true
		}
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) { // which is what it says when the child was just done
		t.Fatalf("child: %v\n%s", err, out)
	}
	return took, false
}

// TestKilledIngest kills ingests at random timestamps, half of them from outside and half at a progress call. Each time
// the store opens, verifies deep and holds a committed snapshot, whole, and the ingest run again completes.
func TestKilledIngest(t *testing.T) {
	kills := 6
	if race.Enabled {
		kills = 2
	}
	if s := os.Getenv(killsEnv); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%s=%q: want a number", killsEnv, s)
		}
		kills = n
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var root string
	dumps := t.TempDir()
	const rows = 6000
	var held []testRow
	var whole time.Duration
	version, number, dead, committed := 1, uint64(0), 0, 0
	for dead < kills {
		if number%20 == 0 {
			// A new store, since verifying reads every snapshot. The first ingest is left alone: it says how long one
			// takes.
			root, held = t.TempDir(), dumpRows(version, rows)
			whole, _ = runChild(t, childJob{Store: root, Dump: writeDump(t, dumps, held)}, 0)
			number = 1
		}
		version++
		dump := dumpRows(version, rows-version%7)
		job := childJob{Store: root, Dump: writeDump(t, dumps, dump)}
		after := time.Duration(0)
		if version%2 == 0 {
			job.KillAt = 1 + r.IntN(120)
		} else {
			after = time.Millisecond + time.Duration(r.Int64N(int64(whole)))
		}
		_, killed := runChild(t, job, after)
		if killed {
			dead++
		}
		s := openStore(t, root)
		now := latest(t, s)
		switch {
		case now == number+1:
			held = dump
			if killed {
				committed++
			}
		case now != number || !killed:
			t.Fatalf("snapshot %d after %d, killed %v", now, number, killed)
		}
		checkWhole(t, s, now, held)
		if now == number { // run again, it completes
			if _, err := Run(t.Context(), s, "ads", []string{job.Dump}, killOptions()); err != nil {
				t.Fatal(err)
			}
			held = dump
			now++
			checkStored(t, s, now, expectedRows(held))
			checkNoSpills(t, root)
		}
		number = now
		if err := os.Remove(job.Dump); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d ingests killed, %d of them after their commit", dead, committed)
}

// checkWhole verifies the whole store and compares its newest snapshot.
func checkWhole(t *testing.T, s *storage.Store, number uint64, rows []testRow) {
	t.Helper()
	report, err := s.Verify(t.Context(), "", true, nil)
	if err != nil || report.DamageCount > 0 {
		t.Fatalf("verify: %v, %d damages: %v", err, report.DamageCount, report.Damage)
	}
	checkStored(t, s, number, expectedRows(rows))
}

// checkNoSpills: an ingest leaves no names of spill files, not even those of killed ones.
func checkNoSpills(t *testing.T, root string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(root, "_tmp", spill.Prefix+"*"))
	if err != nil || len(left) > 0 {
		t.Fatalf("spill files are left: %v, %v", left, err)
	}
}
