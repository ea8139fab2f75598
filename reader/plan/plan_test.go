package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/format/vector/vectortest"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

func drawPlan(t *rapid.T) *Plan {
	p := &Plan{
		Table:     rapid.StringMatching(`[a-z\PC]{1,10}`).Draw(t, "table"),
		Snapshot:  rapid.Uint64Min(1).Draw(t, "snapshot"),
		Partition: rapid.SampledFrom([]string{"", "ds >= '2026-11-01' AND hr < 3", `a = "<&>"`}).Draw(t, "partition"),
		BatchSize: rapid.IntRange(1, MaxBatchSize).Draw(t, "batch"),
		Output:    rapid.SampledFrom([]Output{OutputColumns, OutputTensors}).Draw(t, "output"),
		Dedup:     rapid.SampledFrom([]Dedup{DedupKJT, DedupIKJT, DedupPartial}).Draw(t, "dedup"),
	}
	if rapid.Bool().Draw(t, "branch") {
		p.Branch = rapid.StringN(1, 10, -1).Draw(t, "name")
		p.BranchList = catalog.Pin{Name: rapid.StringN(1, 10, -1).Draw(t, "list"),
			Snapshot: rapid.Uint64Min(1).Draw(t, "of")}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "overlays") {
		p.Overlays = append(p.Overlays, catalog.Pin{Name: fmt.Sprint(i, `"<é`),
			Snapshot: rapid.Uint64Min(1).Draw(t, "of")})
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "features") {
		p.Features = append(p.Features, catalog.Feature{
			ID:         catalog.FeatureID(rapid.Uint64Range(1, 1<<60).Draw(t, "id")<<3 | uint64(i)),
			Name:       rapid.StringN(1, 10, -1).Draw(t, "name"),
			Generation: rapid.Uint32().Draw(t, "generation"),
			Type:       vectortest.DrawType(t),
			Role: rapid.SampledFrom([]catalog.Role{catalog.RoleFeature, catalog.RoleLabel,
				catalog.RoleTimeKey}).Draw(t, "role"),
			Logical:      rapid.SampledFrom([]string{"", "timestamp[us, tz=UTC]", "struct<a, b>"}).Draw(t, "logical"),
			OriginColumn: rapid.String().Draw(t, "origin column"),
			OriginKey:    rapid.String().Draw(t, "origin key"),
		})
		if rapid.IntRange(0, 4).Draw(t, "partition key") == 0 {
			p.Features[i] = PartitionColumn(fmt.Sprint(p.Features[i].Name, i))
		}
	}
	if unit := rapid.SampledFrom([]Unit{UnitNone, UnitSession, UnitRow}).Draw(t, "unit"); unit != UnitNone {
		p.Shuffle = Shuffle{
			Unit: unit, BufferStripes: rapid.IntRange(1, MaxBufferStripes).Draw(t,
				"buffer_stripes"), Seed: rapid.Uint64().Draw(t, "seed"),
		}
		if unit == UnitSession || rapid.Bool().Draw(t, "key") {
			p.Shuffle.Key = catalog.Feature{ID: 7, Name: "s", Role: catalog.RoleSessionKey,
				Type: vectortest.DrawType(t)}
		}
	}
	if rapid.Bool().Draw(t, "expands") {
		p.Expanded = rapid.SliceOfN(rapid.Bool(), len(p.Features), len(p.Features)).Draw(t, "expanded")
		p.Expanded[rapid.IntRange(0, len(p.Features)-1).Draw(t, "surely")] = true
	}
	return p
}

func TestPlanRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var q Plan
		if err := json.Unmarshal(data, &q); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if !reflect.DeepEqual(*p, q) || p.Hash() != q.Hash() || p.Hash() == 0 {
			t.Fatalf("%+v became %+v", p, q)
		}
		q.BatchSize = p.BatchSize%MaxBatchSize + 1
		if q.BatchSize != p.BatchSize && p.Hash() == q.Hash() {
			t.Fatal("two plans have one hash")
		}
	})
}

// The encoding of version 1 stays readable for ever.
const goldenPlan = `{"version":1,"table":"ads","snapshot":7,"partition":"ds > '2026-11-01'",` +
	`"batch_size":512,"output":"tensors",` +
	`"features":[{"id":"00000000000000ff","name":"user_ids","role":"feature","kind":"sparse","elem":"int64"},` +
	`{"id":"0000000000000100","name":"click","generation":2,"role":"label","kind":"dense","elem":"bool"},` +
	`{"id":"0000000000000101","name":"m.7","role":"feature","kind":"embedding","elem":"float32","dim":16,` +
	`"logical":"float16","origin_column":"m","origin_key":"7"}]}`

// What a partition key adds to it; readers from before partition keys refuse it by its role.
const goldenPartitionKey = `,{"name":"ds","role":"partition key","kind":"string"}]}`

func goldenPlanValue() *Plan {
	return &Plan{
		Table: "ads", Snapshot: 7, Partition: "ds > '2026-11-01'", BatchSize: 512, Output: OutputTensors,
		Features: []catalog.Feature{
			{ID: 255, Name: "user_ids", Type: vector.Type{Kind: vector.Sparse, Elem: vector.Int64}},
			{ID: 256, Name: "click", Generation: 2, Role: catalog.RoleLabel,
				Type: vector.Type{Kind: vector.Dense, Elem: vector.Bool}},
			{
				ID: 257, Name: "m.7", Type: vector.Type{Kind: vector.Embedding, Elem: vector.Float32, Dim: 16},
				Logical: "float16", OriginColumn: "m", OriginKey: "7",
			},
		},
	}
}

func TestPlanGolden(t *testing.T) {
	p := goldenPlanValue()
	data, err := p.MarshalJSON()
	if err != nil || string(data) != goldenPlan {
		t.Fatalf("got  %s, %v\nwant %s", data, err, goldenPlan)
	}
	if h := p.Hash(); h != 0xeead2e6027ac9443 {
		t.Errorf("hash %016x", h)
	}
	const want = `table      ads
snapshot   7
partition  ds > '2026-11-01'
batch      512 rows, tensors
features   3 (1 labels, 0 keys)
  00000000000000ff  list<int64>           user_ids
  0000000000000100  bool                  click (label)
  0000000000000101  float32[16]           m.7
`
	if p.String() != want {
		t.Errorf("got\n%s\nwant\n%s", p, want)
	}
}

func TestPlanGoldenPartitionKey(t *testing.T) {
	p := goldenPlanValue()
	p.Features = append(p.Features, PartitionColumn("ds"))
	golden := strings.TrimSuffix(goldenPlan, "]}") + goldenPartitionKey
	data, err := p.MarshalJSON()
	if err != nil || string(data) != golden {
		t.Fatalf("got  %s, %v\nwant %s", data, err, golden)
	}
	if h := p.Hash(); h != 0xd82ff5abbcf9bf6b {
		t.Errorf("hash %016x", h)
	}
	if want := "features   3 (1 labels, 0 keys)\n"; !strings.Contains(p.String(), want) {
		t.Errorf("%s lacks %s", p, want)
	}
	if want := "                    string                ds (partition key)\n"; !strings.HasSuffix(p.String(), want) {
		t.Errorf("%s ends not in %s", p, want)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"kind":"string"}]`, `"kind":"bytes"}]`, "nothing else"},
		{`{"name":"ds"`, `{"id":"00000000000000ef","name":"ds"`, "nothing else"},
		{`{"name":"ds"`, `{"name":"ds","generation":1`, "nothing else"},
		{`"name":"ds"`, `"name":""`, "no partition key"},
		{`"partition key"`, `"feature"`, "16 hex digits"},
		{`]}`, goldenPartitionKey, "taken"},
	} {
		var p Plan
		err := p.UnmarshalJSON([]byte(golden[:len(goldenPlan)-2] +
			strings.Replace(golden[len(goldenPlan)-2:], c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.new, err, c.want)
		}
	}
}

// Dedup is a part of the encoding, of the hash and of what is printed; kjt is none, as in plans from before it.
func TestPlanGoldenDedup(t *testing.T) {
	for dedup, hash := range map[Dedup]uint64{DedupKJT: 0xeead2e6027ac9443, DedupIKJT: 0x0529b5f47ac7feb9,
		DedupPartial: 0x7f7f7be68202dc2b} {
		p := goldenPlanValue()
		p.Dedup = dedup
		golden, line := goldenPlan, "batch      512 rows, tensors\n"
		if dedup != DedupKJT {
			golden = strings.Replace(golden, `"tensors",`, `"tensors","dedup":"`+dedup.String()+`",`, 1)
			line = "batch      512 rows, tensors, " + dedup.String() + "\n"
		}
		data, err := p.MarshalJSON()
		if err != nil || string(data) != golden {
			t.Fatalf("got  %s, %v\nwant %s", data, err, golden)
		}
		if h := p.Hash(); h != hash {
			t.Errorf("%v: hash %016x", dedup, h)
		}
		if !strings.Contains(p.String(), line) {
			t.Errorf("%s lacks %s", p, line)
		}
		if d, err := ParseDedup(dedup.String()); err != nil || d != dedup {
			t.Errorf("%v became %v, %v", dedup, d, err)
		}
	}
	p := goldenPlanValue()
	if p.Dedup = 3; p.Validate() == nil {
		t.Error("dedup 3 is accepted")
	}
}

func TestPlanRefusals(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"version":1`, `"version":2`, "version 2"},
		{`"batch_size":512`, `"batch_size":0`, "batch size 0"},
		{`"output":"tensors"`, `"output":"rows"`, `output "rows"`},
		{`"output":"tensors"`, `"output":"tensors","dedup":"rows"`, `dedup "rows"`},
		{`"output":"tensors"`, `"output":"tensors","dedup":"kjt"`, "not written"},
		{`"output"`, `"colour"`, "unknown field"},
		{`"role":"label"`, `"role":"king"`, `role "king"`},
		{`"0000000000000100"`, `"00000000000000ff"`, "taken"},
		{`"0000000000000100"`, `"100"`, "16 hex digits"},
		{`"0000000000000100"`, `"0000000000000000"`, "id is zero"},
		{`"kind":"dense"`, `"kind":"inverse"`, "inverse"},
		{`"dim":16`, `"dim":0`, "dimension"},
		{`"snapshot":7`, `"snapshot":0`, "snapshot 0"},
		{`}]}`, `}]}x`, "after the end"},
	} {
		var p Plan
		err := p.UnmarshalJSON([]byte(strings.Replace(goldenPlan, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.new, err, c.want)
		}
	}
}

// Whatever is decoded is a plan that encodes to itself; everything else is an error.
func FuzzPlanDecode(f *testing.F) {
	f.Add([]byte(goldenPlan))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p Plan
		if p.UnmarshalJSON(data) != nil {
			return
		}
		out, err := p.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var q Plan
		if err := q.UnmarshalJSON(out); err != nil || !reflect.DeepEqual(p, q) {
			t.Fatalf("%s: %v", out, err)
		}
		_ = p.String()
	})
}

func FuzzSplitDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"plan":"00000000000000ff","first_row":3,"rows":4}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s, again Split
		if s.UnmarshalJSON(data) != nil {
			return
		}
		out, err := s.MarshalJSON()
		if err != nil || again.UnmarshalJSON(out) != nil || again != s {
			t.Fatalf("%s: %v", out, err)
		}
	})
}

// fakeSchema counts what selecting costs.
type fakeSchema struct {
	features []catalog.Feature
	lookups  int
	whole    int
	keys     []string
	keyReads int
	keyFinds int // of the features that are keys
}

func (s *fakeSchema) Lookup(_ context.Context, names ...string) ([]catalog.Feature, error) {
	var out []catalog.Feature
	for _, n := range names {
		s.lookups++
		found := false
		for _, f := range s.features {
			if f.Name == n {
				out = append(out, f)
				found = true
			}
		}
		if !found {
			return nil, storage.ErrNotFound
		}
	}
	return out, nil
}

func (s *fakeSchema) Find(_ context.Context, names ...string) ([]*catalog.Feature, error) {
	out := make([]*catalog.Feature, len(names))
	for i, n := range names {
		s.lookups++
		for k := range s.features {
			if s.features[k].Name == n {
				out[i] = &s.features[k]
			}
		}
	}
	return out, nil
}

func (s *fakeSchema) PartitionKeys(context.Context) ([]string, error) {
	s.keyReads++
	return s.keys, nil
}

func (s *fakeSchema) Features(context.Context) ([]catalog.Feature, error) {
	s.whole++
	return s.features, nil
}

func (s *fakeSchema) KeyFeatures(context.Context) ([]catalog.Feature, error) {
	s.keyFinds++
	return slices.DeleteFunc(slices.Clone(s.features), func(f catalog.Feature) bool { return !f.Role.IsKey() }), nil
}

func TestSelectFeatures(t *testing.T) {
	all := &fakeSchema{keys: []string{"hr", "click", "ds"}}
	for i, n := range []string{"*", "@x", "a", "click", "user_a", "user_b", "user_id"} {
		f := catalog.Feature{ID: catalog.FeatureID(i + 1), Name: n}
		switch n {
		case "click":
			f.Role = catalog.RoleLabel
		case "user_id":
			f.Role = catalog.RoleUserKey
		}
		all.features = append(all.features, f)
	}
	for _, c := range []struct {
		entries, want   string // space separated; an error when want begins with !
		whole, keyReads int
	}{
		{"click a", "click a", 0, 0},
		{"a a", "a", 0, 0},
		{"user_*", "user_a user_b user_id", 1, 1},
		{"user_b user_*", "user_b user_a user_id", 1, 1},
		{"user_?", "user_a user_b", 1, 1},
		{"@labels @keys", "click user_id", 1, 1},
		{"@all", "* @x a click user_a user_b user_id hr= ds=", 1, 1},
		{`\*`, "*", 1, 1},
		{`\@x`, "@x", 1, 1},
		{"nobody", "!not found", 0, 1},
		{"z*", "!selects no feature", 1, 1},
		{"@x", "!want names, globs, @all, @labels, @keys or @partitions", 1, 1},
		{"", "!none asked for", 0, 0},
		// Partition keys.
		{"ds a", "ds= a", 0, 1},
		{"ds ds", "ds=", 0, 1},
		{"@partitions a", "hr= ds= a", 0, 1},
		{"@keys", "user_id", 0, 1},
		{"@partitions @keys click", "hr= ds= user_id click", 0, 1},
		{"@keys user_*", "user_id user_a user_b", 1, 1},
		{"d* h?", "ds= hr=", 1, 1},
		{"?? click", "@x hr= ds= click", 1, 1},
		{"ds @all", "ds= * @x a click user_a user_b user_id hr=", 1, 2},
	} {
		all.whole, all.keyReads = 0, 0
		got, err := selectFeatures(context.Background(), all, strings.Fields(c.entries))
		if want, bad := strings.CutPrefix(c.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", c.entries, err, want)
			}
			continue
		}
		var names []string
		for _, f := range got {
			if IsPartitionKey(f) {
				f.Name += "="
			}
			names = append(names, f.Name)
		}
		if err != nil || strings.Join(names, " ") != c.want || all.whole != c.whole || all.keyReads != c.keyReads {
			t.Errorf("%q: %v, %v, schema read %d times, keys %d; want %s, %d and %d",
				c.entries, names, err, all.whole, all.keyReads, c.want, c.whole, c.keyReads)
		}
	}
	all.keys = nil
	if _, err := selectFeatures(context.Background(), all, []string{"@partitions"}); !errors.Is(err,
		storage.ErrNotFound) {
		t.Error(err)
	}
	if _, err := selectFeatures(context.Background(), all, []string{"z*"}); !errors.Is(err, storage.ErrNotFound) {
		t.Error(err)
	}
}

// globMatch agrees with the definition, read off directly.
func TestGlobMatch(t *testing.T) {
	var slow func(p, n string) bool
	slow = func(p, n string) bool {
		switch {
		case p == "":
			return n == ""
		case p[0] == '*':
			return slow(p[1:], n) || n != "" && slow(p, n[1:])
		case n == "":
			return false
		case p[0] == '?':
			return slow(p[1:], n[1:])
		case p[0] == '\\' && len(p) > 1:
			return p[1] == n[0] && slow(p[2:], n[1:])
		}
		return p[0] == n[0] && slow(p[1:], n[1:])
	}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.StringMatching(`[ab*?\\]{0,8}`).Draw(t, "pattern")
		n := rapid.StringMatching(`[ab*?\\]{0,8}`).Draw(t, "name")
		if got, want := globMatch(p, n), slow(p, n); got != want {
			t.Fatalf("globMatch(%q, %q) is %v", p, n, got)
		}
	})
}
