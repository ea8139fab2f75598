package storage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

const mixedEnv = "STORAGE_TEST_MIX_INTO"

// mixedDone is what a process of TestMixedProcesses says of each of its commits.
type mixedDone struct {
	Op        string // append, overwrite or source
	Partition string
	Segment   string
	Base      uint64
	Snapshot  uint64 // 0: refused
	Conflict  bool   // with ErrConflict
	Duplicate bool   // with ErrDuplicateSource
	Error     string
}

// mixedOverwritten is the one partition that everybody appends to and overwrites.
const mixedOverwritten = "contested"

// mix commits n random changes and prints what became of each.
func mix(t *testing.T, root string, who int, n int) {
	ctx := t.Context()
	l, err := object.NewLocal(root)
	if err != nil {
		t.Fatal(err)
	}
	tab := newTable(t, l)
	tab.s.core.Trees.MemtableBytes = 600 // runs are made and merged under the others' eyes
	r := rand.New(rand.NewPCG(uint64(who), 7))
	for k := range n {
		base := uint64(0)
		if s, err := tab.Latest(ctx); err == nil {
			base = s.Info().Number
		} else if !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
		done := mixedDone{Op: []string{"append", "append", "overwrite", "source"}[r.IntN(4)], Base: base,
			Partition: fmt.Sprint("p", r.IntN(3))}
		if done.Op == "overwrite" || r.IntN(3) == 0 {
			done.Partition = mixedOverwritten
		}
		// Everybody adds one feature of his own and one that all share, which gets wider and wider.
		own := feature(fmt.Sprintf("own-%d-%d", who, k%5), int64Type)
		shared := feature("shared", vector.Type{Kind: vector.Dense, Elem: []vector.Elem{vector.Int8, vector.Int32,
			vector.Int64}[min(k/4, 2)]})
		c := commit.Change{Operation: done.Op, Base: base, Ops: []commit.Operation{commit.AddFeatures{own, shared},
			commit.AddSources{{Fingerprint: fmt.Sprintf("%d-%d", who, k), Name: "x"}}}}
		p := partition("k", done.Partition)
		d := writeSegment(t, tab, p, []uint32{10}, int64(k), segment.Options{}, own.Name)
		done.Segment = d.ID
		c.Set(commit.AddSegments{d})
		switch done.Op {
		case "overwrite":
			c.Set(commit.OverwritePartitions{p})
		case "source":
			commit.Op[commit.AddSources](&c)[0].Fingerprint = fmt.Sprint("same-", k)
		}
		s, err := tab.Commit(ctx, c)
		if err == nil {
			done.Snapshot = s.Info().Number
		} else {
			done.Conflict, done.Duplicate, done.Error = errors.Is(err, ErrConflict), errors.Is(err,
				ErrDuplicateSource), err.Error()
			if err := tab.s.core.Segments.Discard(ctx, d); err != nil {
				t.Fatal(err)
			}
		}
		b, err := json.Marshal(done)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("mixed %s\n", b)
	}
}

// TestMixedProcesses has two and then five processes append to, overwrite and add features to one table at once. What
// commutes succeeds; the rest is refused with the error that says why; every snapshot is what the commits that
// returned, replayed in their order, make of it.
func TestMixedProcesses(t *testing.T) {
	const each = 16
	if root := os.Getenv(mixedEnv); root != "" {
		who, err := strconv.Atoi(os.Getenv(mixedEnv + "_WHO"))
		if err != nil {
			t.Fatal(err)
		}
		mix(t, root, who, each)
		return
	}
	for _, processes := range []int{2, 5} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) { mixedProcesses(t, processes, each) })
	}
}

func mixedProcesses(t *testing.T, processes, each int) {
	ctx := t.Context()
	l := localStore(t)
	outputs := make([][]byte, processes)
	var wg sync.WaitGroup
	for who := range processes {
		cmd := exec.Command(os.Args[0], "-test.run=^TestMixedProcesses$", "-test.count=1")
		cmd.Env = append(os.Environ(), mixedEnv+"="+l.Root(), mixedEnv+"_WHO="+fmt.Sprint(who))
		wg.Go(func() {
			var err error
			if outputs[who], err = cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, outputs[who])
			}
		})
	}
	wg.Wait()
	commits := map[uint64]mixedDone{}
	tried, refused, sources := 0, 0, map[string]int{}
	for who, out := range outputs {
		k := 0
		for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
			line, ok := bytes.CutPrefix(s.Bytes(), []byte("mixed "))
			if !ok {
				continue
			}
			var done mixedDone
			if err := json.Unmarshal(line, &done); err != nil {
				t.Fatal(err)
			}
			tried++
			switch {
			case done.Snapshot != 0:
				if other, ok := commits[done.Snapshot]; ok {
					t.Fatalf("snapshot %d is %+v and %+v", done.Snapshot, done, other)
				}
				commits[done.Snapshot] = done
			case done.Conflict && done.Op == "overwrite", done.Duplicate && done.Op == "source":
				refused++
			default:
				t.Errorf("process %d: %s was refused: %s", who, done.Op, done.Error)
			}
			if done.Op == "source" && done.Snapshot != 0 {
				sources[fmt.Sprint("same-", k)]++
			}
			k++
		}
	}
	if t.Failed() || tried != processes*each {
		t.Fatalf("%d commits tried, want %d", tried, processes*each)
	}
	for print, n := range sources {
		if n != 1 {
			t.Errorf("source %s is in %d times", print, n)
		}
	}
	t.Logf("%d commits, %d refused", len(commits), refused)
	tab := newTable(t, l)
	var want []string
	lastOverwritten := uint64(0) // the newest snapshot that touched the contested partition
	for n := uint64(1); n <= uint64(len(commits)); n++ {
		done, ok := commits[n]
		if !ok {
			t.Fatalf("no process says that it made snapshot %d of %d", n, len(commits))
		}
		s, err := tab.At(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		mine := done.Partition + " " + done.Segment
		if done.Op == "overwrite" {
			if lastOverwritten > done.Base {
				t.Errorf("snapshot %d overwrote what snapshot %d made, against base %d", n, lastOverwritten, done.Base)
			}
			want = slices.DeleteFunc(want, func(w string) bool { return w[:len(w)-33] == done.Partition })
		}
		want = append(want, mine)
		if done.Partition == mixedOverwritten {
			lastOverwritten = n
		}
		segs, err := s.Segments(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range segs {
			got = append(got, d.Partition[0].Value+" "+d.ID)
		}
		expect := slices.Clone(want)
		slices.SortStableFunc(expect, func(a, b string) int {
			return bytes.Compare([]byte(a[:len(a)-33]),
				[]byte(b[:len(b)-33]))
		})
		if !slices.Equal(got, expect) || s.Info().Rows != uint64(10*len(want)) || s.Info().Operation != done.Op {
			t.Fatalf("snapshot %d (%+v) holds\n%q, want\n%q", n, done, got, expect)
		}
	}
	if _, err := tab.At(ctx, uint64(len(commits))+1); !errors.Is(err, ErrNotFound) {
		t.Errorf("a snapshot that nobody made: %v", err)
	}
	s, err := tab.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fs, err := s.Features(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fs {
		if f.ID != catalog.NewFeatureID(f.Name, 0) {
			t.Errorf("feature %s has id %x", f.Name, f.ID)
		}
	}
	if shared, err := s.Lookup(ctx, "shared"); err != nil || shared[0].Type.Elem != vector.Int64 {
		t.Errorf("shared is %v: %v", shared, err)
	}
	r, err := tab.s.Verify(ctx, "", true, nil)
	if err != nil || r.DamageCount > 0 {
		t.Fatal(err, r.Damage)
	}
	if r, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil || len(r.Removed) > 0 {
		t.Errorf("the processes left %+v: %v", r, err)
	}
}
