package selection

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

// TestLookup compares what is looked up with the values of a table whose keys repeat, are null, and are deleted here
// and there.
func TestLookup(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, object.NewMemory())
	rng := rand.New(rand.NewPCG(5, 1))
	type keys struct{ request, session, user string } // as JSON
	all := map[int]keys{}
	for day := range 4 {
		var b strings.Builder
		for range 300 {
			n := w.next
			w.next++
			k := keys{fmt.Sprintf("\"r-%d\"", n), fmt.Sprint(n / 16), fmt.Sprint(rng.IntN(40) - 20)}
			if rng.IntN(9) == 0 {
				k.request = "null"
			}
			if rng.IntN(9) == 0 {
				k.user = "null"
			}
			all[n] = k
			fmt.Fprintf(&b, "{\"number\": %d, \"request\": %s, \"session\": %s, \"user\": %s, \"tags\": [1, %d], "+
				"\"day\": \"%d\"}\n", n, k.request, k.session, k.user, n, day)
		}
		_, err := ingest.Run(ctx, w.table.Store(), "t", []string{w.file("rows.jsonl", b.String())}, ingest.Options{
			MappingFile: w.file("mapping.json",
				`{"columns": {"request": {"role": "request_key"}, "user": {"role": "user_key"}}}`),
			SessionKey: "session", PartitionBy: "day",
			Options: writer.Options{SegmentRows: 120, StripeRows: 16, Workers: 2, Memory: 64 << 20},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Delete(ctx, w.table, &Query{Where: "number >= 100 AND number < 180"}, Options{}); err != nil {
		t.Fatal(err)
	}
	for n := 100; n < 180; n++ {
		delete(all, n)
	}
	snap := w.latest()
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range segments {
		if d.KeysSize == 0 {
			t.Fatalf("segment %s has no table of keys", d.ID)
		}
	}
	plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: []string{"number"}})
	if err != nil {
		t.Fatal(err)
	}
	layout, err := reader.NewLayout(ctx, snap, plan)
	if err != nil {
		t.Fatal(err)
	}
	taker, err := layout.Taker(reader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	for range 60 {
		feature := []string{"request", "session", "user", ""}[rng.IntN(4)]
		of := func(k keys) string {
			return map[string]string{"request": k.request, "session": k.session, "user": k.user, "": k.request}[feature]
		}
		given := map[string]bool{}
		for range 1 + rng.IntN(6) {
			if k := of(all[rng.IntN(w.next)]); k != "" && k != "null" {
				given[strings.Trim(k, "\"")] = true
			}
		}
		given[map[bool]string{true: "999", false: "nobody"}[feature == "session" || feature == "user"]] = true
		// of little memory in several parts
		source := &KeySource{Feature: feature, Memory: []int64{0, 320}[rng.IntN(2)]}
		for k := range given {
			source.Given = append(source.Given, k)
		}
		found, err := Lookup(ctx, &storage.View{Snapshot: snap}, source, reader.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, missing := []int{}, len(given)
		seen := map[string]bool{}
		for n, k := range all {
			if k := strings.Trim(of(k), "\""); given[k] {
				want = append(want, n)
				seen[k] = true
			}
		}
		missing -= len(seen)
		slices.Sort(want)
		var at []uint64
		rows := 0
		for _, s := range found.Segments {
			at = append(at, s.Positions...)
			rows += len(s.Rows)
		}
		got := []int{}
		if len(at) > 0 {
			b, err := taker.Take(ctx, at)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range b.Columns[0].Ints {
				got = append(got, int(v))
			}
			b.Release()
		}
		if !slices.IsSorted(at) || rows != len(want) || int(found.Rows) != len(want) ||
			int(found.Keys.Missing) != missing {
			t.Fatalf("%s of %v: %+v, want %d rows and %d missing", feature, source.Given, found, len(want), missing)
		}
		slices.Sort(got)
		w.check(fmt.Sprint(feature, " of ", source.Given), got, want)
	}
	if _, err := Lookup(ctx, &storage.View{Snapshot: snap}, &KeySource{Feature: "tags", Given: []string{"1"}},
		reader.Options{}); !errors.Is(err, ErrQuery) ||
		!strings.Contains(err.Error(), "want integers, strings or bytes") {
		t.Errorf("keys of a list: %v", err)
	}
}
