package overlay

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
)

// TestExpression holds expressions to their meaning in Go, over nulls, lists, partitions and deleted rows.
func TestExpression(t *testing.T) {
	for seed := range uint64(fewer(4)) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := newStore(t, object.NewMemory())
		fields := []arrow.Field{
			nullable("id", arrow.PrimitiveTypes.Int64), nullable("ds", arrow.BinaryTypes.String),
			nullable("click", arrow.PrimitiveTypes.Int8),
			nullable("dwell", arrow.PrimitiveTypes.Float32), nullable("hist", arrow.ListOf(arrow.PrimitiveTypes.Int64)),
			nullable("*odd name", arrow.PrimitiveTypes.Int64), nullable("rate", arrow.PrimitiveTypes.Float64),
		}
		var rows []row
		for i := range 400 + r.IntN(1000) {
			rows = append(rows, row{
				"id": intValue(int64(i)), "ds": textValue(fmt.Sprint("2026-11-0", r.IntN(3))),
				"click":     withNulls(r, 0.2, func(r *rand.Rand) value { return intValue(int64(r.IntN(2))) }),
				"dwell":     withNulls(r, 0.2, func(r *rand.Rand) value { return floatValue(float32(r.IntN(20))) }),
				"hist":      withNulls(r, 0.2, columnKinds[7].make),
				"*odd name": intValue(int64(r.IntN(3))),
				"rate":      doubleValue(r.Float64()),
			})
		}
		ingestRows(t, s, fields, rows, nil)
		if seed%2 == 0 {
			deleteRows(t, s, r)
		}
		const and = "click = 1 AND dwell > 10"
		report, err := Add(t.Context(), s, "ads", "o", Options{Exprs: []string{
			"label_v2 = " + and, "`long`=len(hist) > 2 ", ` "*odd name" = "*odd name" = 2`,
			"late = ds > '2026-11-01' OR click = 1", "rate = click = 1",
		}, Role: catalog.RoleLabel, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		snap := latest(t, s)
		checkNew(t, snap, report, []string{"click", "dwell", "hist", "*odd name", "ds"}, wantExpressions)
		if report.Covered != report.Rows || len(report.Partial) > 0 {
			t.Fatalf("not all rows are covered: %+v", report)
		}
		layers := readOverlay(t, snap, "o")
		for id, l := range layers {
			if !l.All {
				t.Fatalf("layer over segment %s does not cover it whole", id)
			}
		}
		o, err := snap.Overlay(t.Context(), "o")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range o.Features {
			want := "int8 label"
			switch f.Name {
			case "*odd name":
				want = "int64 feature"
			case "rate":
				want = "float64 feature"
			}
			if got := f.Type.String() + " " + f.Role.String(); got != want {
				t.Errorf("feature %s is a %s: want %s", f.Name, got, want)
			}
		}
		verifyClean(t, s)
	}
}

// wantExpressions is what the expressions of TestExpression give in a row.
func wantExpressions(x map[string]string) (map[string]string, bool) {
	truth := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	const unknown = -1
	click, dwell, long := unknown, unknown, unknown
	if x["click"] != "null" {
		click = truth(x["click"] == "[1]")
	}
	if x["dwell"] != "null" {
		var v float64
		_, _ = fmt.Sscanf(x["dwell"], "[%g]", &v)
		dwell = truth(v > 10)
	}
	if x["hist"] != "null" {
		long = truth(len(strings.Fields(x["hist"])) > 2)
	}
	and := min(click, dwell)
	if click == unknown && dwell == 0 || click == 0 && dwell == unknown {
		and = 0
	} else if click == unknown || dwell == unknown {
		and = unknown
	}
	late := truth(x["ds"] > `"2026-11-01"`)
	if late == 0 {
		late = click
	}
	text := func(v int) string {
		if v == unknown {
			return "null"
		}
		return fmt.Sprint([]int{v})
	}
	return map[string]string{
		"label_v2": text(and), "long": text(long), "*odd name": text(truth(x["*odd name"] == "[2]")),
		"late": text(late), "rate": text(click),
	}, true
}

// Expressions of partition keys alone read nothing.
func TestExpressionOfPartitionKeys(t *testing.T) {
	s := newStore(t, object.NewMemory())
	var rows []row
	for i := range 1000 {
		rows = append(rows, row{"id": intValue(int64(i)), "ds": textValue(fmt.Sprint("d", i%3))})
	}
	ingestRows(t, s, []arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64),
		nullable("ds", arrow.BinaryTypes.String)}, rows, nil)
	if _, err := Add(t.Context(), s, "ads", "o", Options{Exprs: []string{"y = ds = 'd1'"}}); err != nil {
		t.Fatal(err)
	}
	n := checkOverlay(t, latest(t, s), "o", []string{"ds"}, func(x map[string]string) (map[string]string, bool) {
		if x["ds"] == `"d1"` {
			return map[string]string{"y": "[1]"}, true
		}
		return map[string]string{"y": "[0]"}, true
	})
	if n != 1000 {
		t.Fatalf("%d rows covered", n)
	}
}

// Expressions are of what a reader sees: under what is part of the table, under a branch's overlays, and under those
// that are named.
func TestExpressionUnderOverlays(t *testing.T) {
	s := keyed(t, 700)
	add := func(ref, name string, over []string, exprs ...string) {
		t.Helper()
		if _, err := Add(t.Context(), s, ref, name, Options{Exprs: exprs, Over: over}); err != nil {
			t.Fatal(err)
		}
	}
	change := func(c commit.Change) {
		t.Helper()
		snap := latest(t, s)
		c.Operation, c.Base = "test", snap.Info().Number
		if _, err := snap.Table().Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	add("ads", "merged", nil, "click = click = 0") // the other way round
	add("ads", "named", nil, "low = id < 300")
	change(commit.Change{Ops: []commit.Operation{commit.MergeOverlays{"merged"}}})
	change(commit.Change{Ops: []commit.Operation{commit.SetBranches{{Name: "b",
		Overlays: []catalog.Pin{{Name: "named"}}}}}})
	add("ads", "a", []string{"named"}, "y = click = 1 AND low = 1")
	add("ads@b", "b", nil, "z = click = 1 AND low = 1")
	if _, err := Add(t.Context(), s, "ads", "c", Options{Exprs: []string{"y = low = 1"}}); err == nil ||
		!strings.Contains(err.Error(), "low") {
		t.Fatal(err)
	}
	snap := latest(t, s)
	layers := [2]map[string]readLayer{readOverlay(t, snap, "a"), readOverlay(t, snap, "b")}
	rows := readRows(t, snap, "id")
	segments, err := snap.Segments(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range segments {
		for k := range int(d.Rows) {
			var id int
			_, _ = fmt.Sscanf(rows[0]["id"], "[%d]", &id)
			rows = rows[1:]
			want := "[0]"
			if id%2 == 0 && id < 300 {
				want = "[1]"
			}
			if y, z := layers[0][d.ID].rows[k]["y"], layers[1][d.ID].rows[k]["z"]; y != want || z != want {
				t.Fatalf("row of id %d: %s under named overlays, %s on the branch: want %s", id, y, z, want)
			}
		}
	}
	verifyClean(t, s)
}

func TestSplitExpr(t *testing.T) {
	for _, c := range []struct{ text, name, condition string }{
		{"a = b = 1", "a", "b = 1"},
		{" a.b=c == 1 ", "a.b", "c == 1"},
		{`"a = b" = c`, "a = b", "c"},
		{"`a``b`=c", "a`b", "c"},
		{"été = x >= 1", "été", "x >= 1"},
		{"a", "", ""}, {"a =", "", ""}, {"= a", "", ""}, {"", "", ""}, {"a == 1", "", ""}, {"a >= 1", "", ""},
		{"a != 1", "", ""},
		{"(a = 1)", "", ""}, {"a b = 1", "", ""}, {`"a`, "", ""}, {`"a" b`, "", ""},
		{`"a"b = 1`, "", ""}, {"'a' = b", "", ""},
		{"\"\" = b", "", ""},
	} {
		name, condition, err := splitExpr(c.text)
		if name != c.name || condition != c.condition || (err == nil) != (c.name != "") {
			t.Errorf("%q is %q and %q, %v: want %q and %q", c.text, name, condition, err, c.name, c.condition)
		}
	}
}
