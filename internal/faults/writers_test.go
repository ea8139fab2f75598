package faults

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
)

var (
	writers = flag.Int("writers", 4, "processes that commit to one table")
	commits = flag.Int("commits", 10, "commits of each")
)

// writer is a process that commits so often. It prints the number of the snapshot that each commit made.
func writer(args []string) error {
	ctx := context.Background()
	uri, endpoint, who := args[0], args[1], args[2]
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	blobs, err := object.OpenWith(uri, map[string]string{"endpoint_url": endpoint})
	if err != nil {
		return err
	}
	s, err := storage.Create(ctx, blobs, storage.Options{})
	if err != nil {
		return err
	}
	table, err := s.NewTable(ctx, "t")
	if err != nil {
		return err
	}
	for k := range n {
		of := source(who, k)
		made, err := table.Commit(ctx, commit.Change{Operation: of.Name,
			Ops: []commit.Operation{commit.AddSources{of}}})
		if err != nil {
			return fmt.Errorf("%s: %w", of.Name, err)
		}
		fmt.Println(made.Info().Number, of.Name)
	}
	return s.Close()
}

// source is what the k-th commit of a writer adds.
func source(who string, k int) catalog.Source {
	name := fmt.Sprintf("%s-%d", who, k)
	return catalog.Source{Name: name, Fingerprint: name}
}

// broken breaks one of 20 requests: its answer is lost, or has half a body, or the service is busy.
func broken(asked *atomic.Int64) func(*http.Request) objectserver.Fault {
	faults := []objectserver.Fault{
		{Lost: true}, {Status: http.StatusConflict, Code: "OperationAborted"},
		{Status: http.StatusServiceUnavailable, Code: "SlowDown"}, {Cut: 10},
	}
	return func(*http.Request) objectserver.Fault {
		if asked.Add(1); rand.IntN(20) > 0 {
			return objectserver.Fault{}
		}
		return faults[rand.IntN(len(faults))]
	}
}

// TestManyWriters has processes commit to one table while one request of 20 fails. Each of their commits is one
// snapshot and in it once, and no other snapshot is there.
func TestManyWriters(t *testing.T) {
	s := startS3(t)
	var asked atomic.Int64
	s.proxy.Break(broken(&asked))
	uri, begin := s.root+"/many", time.Now()
	outputs := make([]bytes.Buffer, *writers)
	var wg sync.WaitGroup
	for i := range outputs {
		c := exec.Command(os.Args[0], uri, s.proxied, fmt.Sprint("w", i), strconv.Itoa(*commits))
		c.Env = append(os.Environ(), childEnv+"=writer")
		c.Stdout, c.Stderr = &outputs[i], &outputs[i]
		wg.Go(func() {
			if err := c.Run(); err != nil {
				t.Errorf("writer %d: %v: %s", i, err, outputs[i].String())
			}
		})
	}
	wg.Wait()
	n, took := *writers**commits, time.Since(begin)
	t.Logf("%d commits of %d processes in %.1f s, %.1f a second, %d requests", n, *writers, took.Seconds(),
		float64(n)/took.Seconds(), asked.Load())
	made := map[uint64]string{} // what a process says that a snapshot is
	for i := range outputs {
		lines := bufio.NewScanner(&outputs[i])
		for lines.Scan() {
			number, name, _ := strings.Cut(lines.Text(), " ")
			k, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				break // its error, which was told
			}
			if made[k] != "" {
				t.Errorf("snapshot %d is %s and %s", k, made[k], name)
			}
			made[k] = name
		}
	}
	store, err := storage.Open(t.Context(), open(t, uri), storage.Options{})
	must(t, err)
	defer store.Close()
	table, err := store.Table(t.Context(), "t")
	must(t, err)
	var before *storage.Snapshot
	for k := range uint64(n) {
		at, err := table.At(t.Context(), k+1)
		must(t, err)
		name := at.Info().Operation
		if name != made[k+1] {
			t.Errorf("snapshot %d is %q, and a process says %q", k+1, name, made[k+1])
		}
		has, err := at.HasSource(t.Context(), name)
		must(t, err)
		had := false
		if before != nil {
			had, err = before.HasSource(t.Context(), name)
			must(t, err)
		}
		if !has || had {
			t.Errorf("snapshot %d has %s: %v, and the one before it: %v", k+1, name, has, had)
		}
		before = at
	}
	if _, err := table.At(t.Context(), uint64(n)+1); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("there is a snapshot that nobody made: %v", err)
	}
	for i := range *writers {
		for k := range *commits {
			of := source(fmt.Sprint("w", i), k)
			if has, err := before.HasSource(t.Context(), of.Fingerprint); err != nil || !has {
				t.Errorf("the newest snapshot does not have %s: %v", of.Name, err)
			}
		}
	}
	mustRun(t, "gc", uri, "--grace", "0s")
	if n := s.uploads(); n > 0 {
		t.Errorf("%d uploads in parts are left", n)
	}
	mustRun(t, "verify", uri)
}
