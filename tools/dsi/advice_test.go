package dsi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/overlay"
	"github.com/dsistore/dsistore/tools/report"
	"github.com/dsistore/dsistore/tools/report/page/pagetest"
	"github.com/dsistore/dsistore/tools/selection"
	"github.com/dsistore/dsistore/usage"
	"github.com/dsistore/dsistore/writer"
)

// An advised is a store with the table ads, of which dsistat gives advice. Everything is done to copies of it, by the
// commands as they are printed, in a shell.
type advised struct {
	*testing.T
	dir   string // holds the folder "the store"
	rand  *rand.Rand
	store *storage.Store
	dumps int
	next  int
}

func newAdvised(t *testing.T) *advised {
	if race.Enabled {
		t.Skip("starts the commands many times, each of them slow under the race detector; make test runs it " +
			"without as well")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	a := &advised{T: t, dir: t.TempDir(), rand: rand.New(rand.NewPCG(8, 34))}
	a.open()
	return a
}

func (a *advised) check(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

func (a *advised) open() {
	blobs, err := object.Open(filepath.Join(a.dir, "the store"))
	a.check(err)
	a.store, err = storage.Create(a.Context(), blobs, storage.Options{})
	a.check(err)
	a.Cleanup(func() { a.store.Close() })
}

// rows writes a dump of rows of sessions that take turns: what a user has is the same, or grows, within a session, what
// an item has changes with each row.
func (a *advised) rows(sessions, rows, features int) string {
	a.Helper()
	a.dumps++
	path := filepath.Join(a.dir, fmt.Sprintf("dump-%d.jsonl", a.dumps))
	var b strings.Builder
	for range rows {
		a.next++
		s := a.next % sessions
		user := rand.New(rand.NewPCG(uint64(s), 1))
		history := make([]int64, 20+a.next/sessions)
		for i := range history {
			history[i] = user.Int64N(1 << 30)
		}
		row := map[string]any{
			"session": fmt.Sprintf("s%05d", s), "time": a.next, "history": history[len(history)-20:],
			"item": a.rand.Int64N(1 << 40), "click": a.rand.IntN(2), "shard": a.next % 20,
		}
		for f := range features {
			row[fmt.Sprintf("user_%03d", f)] = []int64{user.Int64N(1 << 40), user.Int64N(1 << 40), user.Int64N(1 << 40)}
		}
		text, err := json.Marshal(row)
		a.check(err)
		b.Write(append(text, '\n'))
	}
	a.check(os.WriteFile(path, []byte(b.String()), 0o666))
	return path
}

func (a *advised) ingest(path string) {
	a.Helper()
	_, err := ingest.Run(a.Context(), a.store, "ads", []string{path},
		ingest.Options{SessionKey: "session", TimeKey: "time", Options: writer.Options{Workers: 1}})
	a.check(err)
	a.check(os.Remove(path))
}

func (a *advised) table() *storage.Table {
	a.Helper()
	t, err := a.store.Table(a.Context(), "ads")
	a.check(err)
	return t
}

func (a *advised) latest() *storage.Snapshot {
	a.Helper()
	s, err := a.table().Latest(a.Context())
	a.check(err)
	return s
}

// read lets a job read features on each of some days before today.
func (a *advised) read(job string, days []int, features ...string) {
	a.Helper()
	ctx, snap := a.Context(), a.latest()
	plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: features})
	a.check(err)
	for _, ago := range days {
		at := time.Now().AddDate(0, 0, -ago)
		w, err := usage.NewWriter(a.table(), usage.Options{Now: func() time.Time { return at }, User: "ann", Host: "h",
			Interval: -1})
		a.check(err)
		r, err := reader.Open(ctx, snap, plan, reader.Options{Usage: reader.UsageOptions{Writer: w, Job: job}})
		a.check(err)
		for {
			b, err := r.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			a.check(err)
			b.Release()
		}
		a.check(r.Close())
		a.check(w.Close(ctx))
	}
}

// copied returns a folder with a copy of the store.
func (a *advised) copied() string {
	a.Helper()
	to := filepath.Join(a.TempDir(), "copy")
	a.check(os.CopyFS(to, os.DirFS(a.dir)))
	return to
}

// sh runs a line as who pastes it does, and returns what it prints.
func (a *advised) sh(dir, line string) string {
	a.Helper()
	c := exec.Command("sh", "-c", line)
	c.Dir = dir
	c.Env = append(os.Environ(), "DSISTORE_USAGE=off")
	out, err := c.CombinedOutput()
	if err != nil {
		a.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// advice returns dsistat's of a kind on the store in dir, nil: there is none.
func (a *advised) advice(dir, kind string, flags ...string) *report.Advice {
	a.Helper()
	var out struct{ Tables []report.Table }
	text := a.sh(dir, "dsistat advise 'the store' ads --json "+strings.Join(flags, " "))
	a.check(json.Unmarshal([]byte(text), &out))
	for i := range out.Tables[0].Advice {
		if x := &out.Tables[0].Advice[i]; x.Kind == kind {
			return x
		}
	}
	return nil
}

// want is advice, and fails the test where there is none.
func (a *advised) want(dir, kind string, flags ...string) *report.Advice {
	a.Helper()
	x := a.advice(dir, kind, flags...)
	if x == nil {
		a.Fatalf("no advice of kind %s: %s", kind,
			a.sh(dir, "dsistat advise 'the store' ads "+strings.Join(flags, " ")))
	}
	return x
}

// bytes are those of all objects in dir but usage records.
func (a *advised) bytes(dir string) (n uint64) {
	a.Helper()
	a.check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == "usage" {
				return fs.SkipDir
			}
			return err
		}
		i, err := d.Info()
		n += uint64(i.Size())
		return err
	}))
	return n
}

// dry runs a command with --dry-run, and checks that this changes nothing.
func (a *advised) dry(dir, line string) {
	a.Helper()
	files := func() (out []string) {
		a.check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			i, _ := d.Info()
			if !d.IsDir() {
				out = append(out, fmt.Sprint(path, i.Size(), i.ModTime()))
			}
			return err
		}))
		return out
	}
	before := files()
	if before, names, found := strings.Cut(line, " -- "); found {
		a.sh(dir, before+" --dry-run -- "+names)
	} else {
		a.sh(dir, line+" --dry-run")
	}
	if !slices.Equal(before, files()) {
		a.Errorf("%s --dry-run changed the store", line)
	}
}

// dropHistory lets all but the newest snapshot go, with what only they have.
func (a *advised) dropHistory(dir string) {
	a.Helper()
	a.sh(dir, "dsi snapshots expire 'the store' ads --keep-last 1")
	a.sh(dir, "dsi gc 'the store' --grace 0s")
}

// saves runs a piece of advice on a copy, and what is advised then of further kinds, and holds what the first promises
// to what is saved when old snapshots are gone.
func (a *advised) saves(kind string, flags []string, then ...string) (x *report.Advice, dir string, saved uint64) {
	a.Helper()
	dir, before := a.copied(), a.copied()
	a.dropHistory(before)
	x = a.want(dir, kind, flags...)
	a.dry(dir, x.Command)
	a.sh(dir, x.Command)
	for _, kind := range then {
		a.sh(dir, a.want(dir, kind).Command)
	}
	a.dropHistory(dir)
	was, is := a.bytes(before), a.bytes(dir)
	saved = was - min(was, is)
	a.Logf("%s: %s\n  -> %s\n  promised %d (%d to %d), saved %d of %d: %.2f of the promise", x.Kind, x.Text, x.Command,
		x.SavedBytes, x.AtLeast, x.AtMost, saved, was,
		float64(saved)/float64(max(x.SavedBytes, 1)))
	if x.Estimate && (saved < x.AtLeast || x.AtMost > 0 && saved > x.AtMost) {
		a.Errorf("saved %d bytes, want %d to %d", saved, x.AtLeast, x.AtMost)
	}
	a.sh(dir, "dsi verify 'the store'")
	return x, dir, saved
}

// near checks that a promise is kept, but for a share of it.
func (a *advised) near(x *report.Advice, saved uint64, tolerance float64) {
	a.Helper()
	if e := float64(x.SavedBytes)/float64(max(saved, 1)) - 1; e > tolerance || e < -tolerance {
		a.Errorf("%s: %d bytes promised, %d saved: off by %.1f %%, want %.0f at most", x.Kind, x.SavedBytes, saved,
			100*e, 100*tolerance)
	}
}

// TestAdviceOfUnread: features that nobody reads are dropped by the command, few or many of them, whatever they are
// called; then compaction is advised, and takes them out; and what is promised is saved.
func TestAdviceOfUnread(t *testing.T) {
	a := newAdvised(t)
	path := a.rows(100, 2000, 20)
	text, err := os.ReadFile(path)
	a.check(err)
	// As a dump may call its columns.
	odd := strings.ReplaceAll(string(text), `"user_001"`, `"$(touch broken); 'x' *"`)
	a.check(os.WriteFile(path, []byte(strings.ReplaceAll(odd, `"user_002"`, `"-rf"`)), 0o666))
	a.ingest(path)
	used := []string{"session", "time", "click", "item", "history", "user_000"}
	a.read("train", []int{20, 10, 1}, used...)

	x, dir, saved := a.saves(report.AdviceUnread, []string{"--unread", "15"}, report.AdvicePurge)
	if x.FeatureCount != 20 || x.Readers != 3 || x.Jobs != 1 || x.Days != 3 || !strings.Contains(x.Command, " | ") {
		t.Errorf("%+v", x)
	}
	a.near(x, saved, 0.05)
	if got := a.sh(dir, "dsi features 'the store' ads --json"); strings.Contains(got, "user_003") ||
		strings.Contains(got, "-rf") || !strings.Contains(got, "user_000") {
		t.Errorf("left: %s", got)
	}

	rest := make([]string, 0, 20)
	for i := 8; i < 20; i++ {
		rest = append(rest, fmt.Sprintf("user_%03d", i))
	}
	a.read("other", []int{5}, rest...)
	x, dir, saved = a.saves(report.AdviceUnread, []string{"--unread", "15"}, report.AdvicePurge)
	if x.FeatureCount != 8 || strings.Contains(x.Command, "|") {
		t.Errorf("%+v", x)
	}
	a.near(x, saved, 0.05)
	if _, err := os.Stat(filepath.Join(dir, "broken")); err == nil {
		t.Error("a feature's name was run")
	}

	// Records of 20 days say nothing of 30; the command that is printed instead does.
	if x := a.advice(a.dir, report.AdviceUnread); x != nil {
		t.Errorf("%+v", x)
	}
	x = a.want(a.dir, report.AdviceRecords)
	if got := a.sh(a.dir, x.Command); !strings.Contains(got, "8 features were not read for ") {
		t.Errorf("%s: %s", x.Command, got)
	}
}

// TestAdviceOfMerging: sessions that lie in several segments come together, and the dedupe factor and the bytes are
// what was said, about.
func TestAdviceOfMerging(t *testing.T) {
	for _, c := range []struct {
		name                    string
		ingests, sessions, rows int
		kind, flag              string
		most                    float64 // of saved over promised
	}{
		{"a piece in each of six", 6, 300, 900, report.AdviceCluster, "", 2},
		{"by --full", 3, 300, 900, report.AdviceCluster, "--full", 2},
		{"single rows", 5, 400, 400, report.AdviceCluster, "", 2},
		{"sessions of their own", 5, 1 << 20, 300, report.AdviceMerge, "", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAdvised(t)
			for range c.ingests {
				a.ingest(a.rows(c.sessions, c.rows, 4))
			}
			x, dir, saved := a.saves(c.kind, nil)
			if strings.Contains(x.Command, "--full") != (c.flag != "") {
				t.Errorf("%s, want it with %q", x.Command, c.flag)
			}
			if r := float64(saved) / float64(x.SavedBytes); r < 1/c.most || r > c.most {
				t.Errorf("%d bytes promised, %d saved", x.SavedBytes, saved)
			}
			if c.kind != report.AdviceCluster {
				return
			}
			var before, promised, got float64
			text := x.Text[strings.Index(x.Text, "would go from "):]
			_, err := fmt.Sscanf(text, "would go from %f to about %f", &before, &promised)
			a.check(err)
			low, high := promised/1.2, promised*1.2
			_, bounds, found := strings.Cut(text, "(")
			if found {
				_, err = fmt.Sscanf(bounds, "%f to %f", &low, &high)
				a.check(err)
			}
			var out struct{ Tables []report.Table }
			a.check(json.Unmarshal([]byte(a.sh(dir, "dsistat 'the store' ads --json")), &out))
			got = out.Tables[0].Summary.DedupeFactor
			t.Logf("dedupe factor %.2f, promised %.2f, is %.2f", before, promised, got)
			if got < low-0.01 || got > high+0.01 {
				t.Errorf("dedupe factor %.2f, want %.2f to %.2f, from %.2f", got, low, high, before)
			}
			if n := out.Tables[0].Summary.Segments; n != 1 {
				t.Errorf("%d segments", n)
			}
		})
	}
}

// TestAdviceOfPurging: rows deleted, much of a segment or little of it, are taken out by the command, and no more is
// saved than was said.
func TestAdviceOfPurging(t *testing.T) {
	for share, where := range map[float64]string{0.3: "shard < 6", 0.05: "shard = 0"} {
		a := newAdvised(t)
		a.ingest(a.rows(100, 2000, 8))
		_, err := selection.Delete(a.Context(), a.table(), &selection.Query{Where: where}, selection.Options{})
		a.check(err)
		x, dir, _ := a.saves(report.AdvicePurge, nil)
		if strings.Contains(x.Command, "--deleted-share") != (share < 0.1) {
			t.Errorf("%s", x.Command)
		}
		if got := a.sh(dir, "dsi count 'the store' ads"); a.advice(dir, report.AdvicePurge) != nil ||
			strings.Contains(got, "2,000 of 2,000") {
			t.Errorf("deleted rows stay: %s", got)
		}
	}
}

// TestAdviceOfHistory: what old snapshots hold goes when they expire, and what a branch holds when it is dropped: to
// the byte, but for the small objects of the snapshots themselves.
func TestAdviceOfHistory(t *testing.T) {
	a := newAdvised(t)
	a.ingest(a.rows(100, 1000, 8))
	a.sh(a.dir, `dsi branch create 'the store' ads "it's" --at 1`)
	a.sh(a.dir, "dsi compact 'the store' ads --repack")
	branch := a.copied()
	if x := a.advice(branch, report.AdviceExpire); x != nil {
		t.Errorf("a branch holds it too, and %+v", x)
	}
	a.dropHistory(branch)
	x := a.want(branch, report.AdviceBranch)
	before := a.bytes(branch)
	a.sh(branch, x.Command)
	a.dropHistory(branch)
	saved := before - a.bytes(branch)
	t.Logf("%s -> %s: saved %d", x.Text, x.Command, saved)
	a.near(x, saved, 0.05)

	expire := a.copied()
	a.sh(expire, `dsi branch drop 'the store' ads "it's"`)
	x = a.want(expire, report.AdviceExpire)
	before = a.bytes(expire)
	a.dry(expire, x.Command)
	a.sh(expire, x.Command)
	a.sh(expire, "dsi gc 'the store' --grace 0s")
	saved = before - a.bytes(expire)
	t.Logf("%s -> %s: saved %d", x.Text, x.Command, saved)
	a.near(x, saved, 0.05)
	if x := a.advice(expire, report.AdviceExpire); x != nil {
		t.Errorf("it is done, and %+v", x)
	}
}

// TestAdviceOfOverlays: one that covers nothing is dropped, and one that is part of the table becomes part of its
// segments.
func TestAdviceOfOverlays(t *testing.T) {
	a := newAdvised(t)
	a.ingest(a.rows(100, 1000, 2))
	keys := filepath.Join(a.dir, "values.jsonl")
	a.check(os.WriteFile(keys, []byte("{\"time\": 1, \"bought\": 1}\n{\"time\": 2, \"bought\": 0}\n"), 0o666))
	_, err := overlay.Add(a.Context(), a.store, "ads", "few",
		overlay.Options{From: []string{keys}, Key: []string{"time"}})
	a.check(err)
	_, err = overlay.Add(a.Context(), a.store, "ads", "all of them",
		overlay.Options{Exprs: []string{"late = time > 500"}, Role: catalog.RoleLabel})
	a.check(err)
	_, err = selection.Delete(a.Context(), a.table(), &selection.Query{Where: "time < 3"}, selection.Options{})
	a.check(err)
	a.sh(a.dir, "dsi compact 'the store' ads --repack")
	a.sh(a.dir, "dsi overlay merge 'the store' ads 'all of them'")
	for range 2 { // the one that covers nothing, and the one that is merged
		x := a.want(a.dir, report.AdviceOverlay)
		t.Logf("%s -> %s", x.Text, x.Command)
		a.sh(a.dir, x.Command)
	}
	if x := a.advice(a.dir, report.AdviceOverlay); x != nil {
		t.Errorf("it is done, and %+v", x)
	}
	if got := a.sh(a.dir, "dsi count 'the store' ads --where 'late = 1'"); !strings.Contains(got, "500 of 998") {
		t.Errorf("%s", got)
	}
}

// TestAdviceOfPacking: packs in the order that compaction gives them when told so have less read amplification, by what
// was said, about.
func TestAdviceOfPacking(t *testing.T) {
	a := newAdvised(t)
	a.ingest(a.rows(60, 2400, 60))
	jobs := map[string][]string{}
	for j := range 4 {
		var names []string
		for f := j; f < 60; f += 4 + j {
			names = append(names, fmt.Sprintf("user_%03d", f))
		}
		jobs[fmt.Sprint("job ", j)] = names
		a.read(fmt.Sprint("job ", j), []int{40, 35}, names...)
	}
	x := a.want(a.dir, report.AdviceRepack)
	if !strings.Contains(x.Command, "--popular-days") { // without, it looks at 30 days, of which there are no records
		t.Errorf("%s", x.Command)
	}
	over := func() (n uint64) {
		for _, names := range jobs {
			plan, err := reader.NewPlan(a.Context(), a.latest(), reader.PlanOptions{Features: names})
			a.check(err)
			l, err := reader.NewLayout(a.Context(), a.latest(), plan)
			a.check(err)
			c, err := l.Cost(a.Context(), reader.Options{})
			a.check(err)
			n += 2 * c.BytesUnneeded
		}
		return n
	}
	before := over()
	a.dry(a.dir, x.Command)
	a.sh(a.dir, x.Command)
	saved := before - over()
	t.Logf("%s -> %s: unneeded %d, saved %d, promised %d", x.Text, x.Command, before, saved, x.UnneededBytes)
	if r := float64(saved) / float64(x.UnneededBytes); r < 0.67 || r > 1.5 {
		t.Errorf("%d unneeded bytes less, %d promised", saved, x.UnneededBytes)
	}
	if x := a.advice(a.dir, report.AdviceRepack); x != nil {
		t.Logf("still: %s", x.Text)
	}
}

// TestAdviceOfPictures: the commands of the made-up report, of which pictures in the documentation are, are such as dsi
// and dsistat take: that they do not find the store is all that is wrong with them.
func TestAdviceOfPictures(t *testing.T) {
	if race.Enabled {
		t.Skip("starts the commands, as above")
	}
	for _, x := range pagetest.Report(1, 300).Tables[0].Advice {
		for _, line := range strings.Split(x.Command, " | ") {
			args := strings.Fields(line)
			c := exec.Command(args[0], args[1:]...)
			c.Stdin = strings.NewReader("a\n")
			out, err := c.CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 5 {
				t.Errorf("%s: %v\n%s", line, err, out)
			}
		}
	}
}
