package faults

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

var (
	allRequests = flag.Bool("all-requests", false, "kill at every request, on every service; else at a few on S3")
	onService   = flag.String("service", "", "kill on this service alone: s3, gs or az")
	oneRequest  = flag.Int("request", 0, "kill at this request alone of each operation")
)

// fewRequests is at how many requests of an operation it is killed without -all-requests, before and after each; one of
// a first ingest, which takes long.
const fewRequests = 2

// A row is one of a dump. Text is long in dumps whose segments are uploaded in parts.
type row struct {
	Row     int64  `json:"row"`
	Session int64  `json:"session"`
	Text    string `json:"text"`
}

// A killedOperation is one that is killed at each of its requests. STORE, A, B and C in arguments of dsi are the store
// and dumps.
type killedOperation struct {
	name    string
	args    string   // of dsi
	prepare []string // arguments of dsi each: they make the store that it begins with
	upload  bool     // and that has an upload in parts which somebody left
	before  string   // the dumps that the table has; "": there is no table
	after   string
	again   string // what dsi says when it is run again after it was committed; "": it succeeds
}

const firstIngest = "ingest STORE t A --session-key session"

var killedOperations = []killedOperation{
	{name: "first ingest", args: firstIngest, after: "A", again: "already"},
	{name: "ingest", args: "ingest STORE t B", prepare: []string{firstIngest}, before: "A", after: "AB",
		again: "already"},
	{name: "compact", args: "compact STORE t --full", before: "ABC", after: "ABC",
		prepare: []string{firstIngest, "ingest STORE t B", "ingest STORE t C"}},
	{name: "gc", args: "gc STORE --grace 0s", upload: true, before: "ABC", after: "ABC",
		prepare: []string{firstIngest, "ingest STORE t B", "ingest STORE t C", "compact STORE t --full",
			"snapshots expire STORE t --keep-last 1"}},
}

// TestKilledAtRequests runs operations as processes that are killed just before a request reaches the server, and just
// after the server has done it; each time with a copy of the same store. Then nothing is damaged, the table is as
// before or as after, the operation can be run again, and gc leaves neither objects nor uploads that nobody needs.
func TestKilledAtRequests(t *testing.T) {
	for _, s := range services {
		if *onService != "" && *onService != s.name || *onService == "" && !*allRequests && s.name != "s3" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			k := &kills{start: s.start, name: s.name, dir: t.TempDir(), rows: map[string][]row{}}
			k.dump(t, "A", 0, 300, 30)
			if *allRequests {
				k.dump(t, "B", 1000, 110, 83<<10) // more than 8 MiB, which are uploaded in parts
			} else {
				k.dump(t, "B", 1000, 110, 30)
			}
			k.dump(t, "C", 2000, 50, 30)
			for _, o := range killedOperations {
				t.Run(o.name, func(t *testing.T) { k.all(t, o) })
			}
		})
	}
}

// kills are those of one service.
type kills struct {
	start func(t *testing.T) *service
	*service
	name string
	dir  string
	rows map[string][]row // of dumps
	n    int              // stores that were made
}

// dump writes n rows, the first of number from, with texts of so many random bytes.
func (k *kills) dump(t *testing.T, name string, from, n, textBytes int) {
	r := rand.New(rand.NewPCG(uint64(from), 1))
	var out bytes.Buffer
	text := make([]byte, textBytes)
	for i := range n {
		for j := range text {
			text[j] = byte(r.Uint32())
		}
		one := row{int64(from + i), r.Int64N(20), base64.StdEncoding.EncodeToString(text)}
		k.rows[name] = append(k.rows[name], one)
		must(t, json.NewEncoder(&out).Encode(one))
	}
	must(t, os.WriteFile(filepath.Join(k.dir, name+".jsonl"), out.Bytes(), 0o666))
}

// store returns the URI of a store that is not used.
func (k *kills) store() string {
	k.n++
	return fmt.Sprintf("%s/store-%d", k.root, k.n)
}

// args returns arguments of dsi with a store and dumps in them.
func (k *kills) args(text, store string) []string {
	args := strings.Fields(text)
	for i, a := range args {
		switch {
		case a == "STORE":
			args[i] = store
		case k.rows[a] != nil:
			args[i] = filepath.Join(k.dir, a+".jsonl")
		}
	}
	return args
}

// killsOfServer is how many times operations are killed before the next server is started: Azurite keeps in memory what
// was deleted, and answers nothing any more after some thirty first ingests.
const killsOfServer = 20

// A kill is just before or just after a request.
type kill struct {
	at    int
	after bool
}

// all kills an operation at its requests.
func (k *kills) all(t *testing.T, o killedOperation) {
	most := 0
	k.onServer(t, "whole", o, func(t *testing.T, base string) { most = k.one(t, o, base, kill{}).requests })
	if most == 0 { // it has failed, or there is no server
		return
	}
	var requests []int
	switch {
	case *oneRequest > 0:
		requests = []int{*oneRequest}
	case *allRequests:
		for at := 1; at <= most; at++ {
			if at > most-100 || at%37 == 0 { // before them is the probe of a new store, whose requests are alike
				requests = append(requests, at)
			}
		}
	default:
		for range fewRequests {
			requests = append(requests, 1+rand.IntN(most))
		}
		if o.before == "" {
			requests = requests[:1]
		}
	}
	var all []kill
	for _, after := range []bool{false, true} {
		for _, at := range requests {
			all = append(all, kill{at, after})
		}
	}
	killed, committed := 0, 0
	for some := range slices.Chunk(all, killsOfServer) {
		k.onServer(t, "killed", o, func(st *testing.T, base string) {
			for _, at := range some {
				done := k.one(st, o, base, at)
				if st.Failed() {
					st.Fatalf("killed at request %d of %d, after it was done: %v\nagain: -run '%s' -service %s "+
						"-all-requests=%v -request %d", at.at, most, at.after, t.Name(), k.name, *allRequests, at.at)
				}
				if done.killed {
					killed++
				}
				if done.committed {
					committed++
				}
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d requests; killed %d times, %d of them after the commit", most, killed, committed)
}

// onServer runs a test with a server of its own, and the store that an operation begins with.
func (k *kills) onServer(t *testing.T, name string, o killedOperation, test func(t *testing.T, base string)) {
	t.Run(name, func(t *testing.T) {
		k.service = k.start(t)
		base := k.store()
		for _, args := range o.prepare {
			mustRun(t, k.args(args, base)...)
		}
		test(t, base)
	})
}

// An ending is how a run of an operation has ended.
type ending struct {
	killed    bool // else it had not so many requests
	committed bool
	requests  int
}

// one kills an operation at a request, or lets it end where that is request 0, and looks at what is left.
func (k *kills) one(t *testing.T, o killedOperation, base string, at kill) (e ending) {
	uri := k.store()
	store := open(t, uri)
	copyStore(t, open(t, base), store)
	defer func() { must(t, object.DeleteAll(t.Context(), store, objects(t, store))) }()
	if o.upload {
		leaveUpload(t, store)
	}
	old := k.newest(t, uri)
	e.killed, e.requests = k.kill(t, append(k.args(o.args, uri), "--endpoint-url", k.proxied), at)
	made := k.newest(t, uri)
	e.committed = made == old+1
	if made > 0 {
		mustRun(t, "verify", uri, "--deep")
	}
	switch {
	case e.committed || made == old && !e.killed && o.before == o.after:
		k.holds(t, uri, o.after)
	case made == old && e.killed:
		k.holds(t, uri, o.before)
	default:
		t.Errorf("snapshot %d after %d, killed: %v", made, old, e.killed)
	}
	switch code, _, says := run(t, k.args(o.args, uri)...); {
	case code == 0 && (!e.committed || o.again == ""):
	case code == 1 && e.committed && o.again != "" && strings.Contains(says, o.again):
	default:
		t.Errorf("run again, committed before: %v: exit code %d: %s", e.committed, code, says)
	}
	mustRun(t, "gc", uri, "--grace", "0s")
	k.clean(t, uri, store)
	mustRun(t, "verify", uri, "--deep")
	k.holds(t, uri, o.after)
	return e
}

// kill runs dsi as a process that is killed at a request; false: it ended before.
func (k *kills) kill(t *testing.T, args []string, at kill) (killed bool, requests int) {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), childEnv+"=dsi")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	started, ended := make(chan struct{}), make(chan struct{})
	stop := func() {
		<-started
		_ = c.Process.Kill() // it may have ended
		<-ended
	}
	var n atomic.Int64
	k.proxy.Break(func(*http.Request) objectserver.Fault {
		switch {
		case n.Add(1) != int64(at.at):
			return objectserver.Fault{}
		case at.after:
			return objectserver.Fault{Lost: true, Then: stop}
		}
		stop()
		return objectserver.Fault{Dropped: true}
	})
	must(t, c.Start())
	close(started)
	err := c.Wait()
	close(ended)
	k.proxy.Break(nil)
	killed = c.ProcessState.ExitCode() == -1
	if !killed && err != nil || killed && n.Load() < int64(at.at) {
		t.Errorf("dsi %s: %v: %s", strings.Join(args, " "), err, out.String())
	}
	return killed, int(n.Load())
}

// newest returns the number of the table's newest snapshot; 0: there is none.
func (k *kills) newest(t *testing.T, store string) uint64 {
	t.Helper()
	code, out, says := run(t, "describe", store, "t", "--json")
	if code == 5 { // not found
		return 0
	}
	var of struct{ Snapshot uint64 }
	if err := json.Unmarshal([]byte(out), &of); code != 0 || err != nil {
		t.Fatalf("describe: exit code %d, %v: %s", code, err, says)
	}
	return of.Snapshot
}

// holds compares the table's newest snapshot with dumps.
func (k *kills) holds(t *testing.T, store, dumps string) {
	t.Helper()
	if dumps == "" {
		return
	}
	path := filepath.Join(k.dir, "exported.jsonl")
	mustRun(t, "export", store, "t", "--to", path, "--force")
	data, err := os.ReadFile(path)
	must(t, err)
	var got, want []row
	for lines := json.NewDecoder(bytes.NewReader(data)); lines.More(); {
		var one row
		must(t, lines.Decode(&one))
		got = append(got, one)
	}
	slices.SortFunc(got, func(a, b row) int { return cmp.Compare(a.Row, b.Row) })
	for _, name := range strings.Split(dumps, "") {
		want = append(want, k.rows[name]...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the table has %d rows, or others than the %d of the dumps %s", len(got), len(want), dumps)
	}
}

// clean looks for objects and uploads that nobody needs.
func (k *kills) clean(t *testing.T, uri string, store object.Store) {
	t.Helper()
	left := runJSON[struct {
		Removed             []any
		Referenced, Unknown int
	}](t, "gc", uri, "--grace", "0s", "--dry-run")
	data := slices.DeleteFunc(objects(t, store), func(name string) bool { return strings.HasPrefix(name, "tables/") })
	if len(left.Removed) > 0 || left.Unknown > 0 || len(data)-1 != left.Referenced { // the marker is not referenced
		t.Errorf("gc has left %+v: %q", left, data)
	}
	if k.uploads != nil && k.uploads() > 0 {
		t.Errorf("gc has left %d uploads in parts", k.uploads())
	}
}

// leaveUpload begins an upload in parts and leaves it.
func leaveUpload(t *testing.T, s object.Store) {
	t.Helper()
	parts, ok := object.As[interface {
		CreateInParts(ctx context.Context, name string) (object.Writer, error)
	}](s)
	if !ok {
		t.Fatal("the store has no uploads in parts")
	}
	w, err := parts.CreateInParts(t.Context(), names.RandomID().Dir()+names.IndexFile)
	must(t, err)
	_, err = w.Write(make([]byte, 8<<20+1)) // a part, and what is not sent
	must(t, err)
}
