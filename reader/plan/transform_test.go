package plan

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage/catalog"
)

var (
	floatDense  = vector.Type{Kind: vector.Dense, Elem: vector.Float32}
	idList      = vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	scoredList  = vector.Type{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}
	stringDense = vector.Type{Kind: vector.String}
)

// The encoding of transforms, and what each gives, stay what they are for ever.
const goldenTransforms = `{"version":1,"table":"ads","snapshot":7,"batch_size":512,"output":"tensors",` +
	`"features":[{"id":"00000000000000ff","name":"user_ids","role":"feature","kind":"sparse","elem":"int64",` +
	`"transforms":"first(50) | hash(1000000, seed=7)"},` +
	`{"id":"0000000000000100","name":"age","role":"feature","kind":"dense","elem":"int8","logical":"date32",` +
	`"transforms":"fill(-1) | bucketize(0, 18, 65.5) | list"},` +
	`{"id":"0000000000000101","name":"plain","role":"feature","kind":"dense","elem":"float64"}]}`

func TestPlanGoldenTransforms(t *testing.T) {
	var p Plan
	if err := json.Unmarshal([]byte(goldenTransforms), &p); err != nil {
		t.Fatal(err)
	}
	data, err := p.MarshalJSON()
	if err != nil || string(data) != goldenTransforms {
		t.Fatalf("got  %s, %v\nwant %s", data, err, goldenTransforms)
	}
	if h := p.Hash(); h != 0x7313a61909a2aceb {
		t.Errorf("hash %016x", h)
	}
	const want = `features   3 (0 labels, 0 keys)
  00000000000000ff  list<int64>           user_ids
                ->  list<int64>             first(50) | hash(1000000, seed=7)
  0000000000000100  int8                  age
                ->  list<int32>             fill(-1) | bucketize(0, 18, 65.5) | list
  0000000000000101  float64               plain
`
	if !strings.HasSuffix(p.String(), want) {
		t.Errorf("got\n%s\nwant\n%s", &p, want)
	}
	if p.StoredType(1) != (vector.Type{Kind: vector.Dense, Elem: vector.Int8}) || p.Features[1].Logical != "" ||
		p.Features[1].Type != (vector.Type{Kind: vector.Sparse, Elem: vector.Int32}) ||
		p.StoredType(2) != p.Features[2].Type {
		t.Errorf("%+v", p)
	}
	for _, c := range []struct{ old, new, want string }{
		{"first(50) | ", "first(50)|", "is written"},
		{"first(50)", "frist(50)", `transforms of "user_ids": expression, column 1: unknown`},
		{`"sparse"`, `"dense"`, `transforms of "user_ids": first of int64: it takes lists`},
		{`"sparse","elem":"int64"`, `"sparse"`, "element type"},
		{`"dense","elem":"int8"`, `"embedding","elem":"int8","dim":0`, "dimension"},
	} {
		var p Plan
		err := p.UnmarshalJSON([]byte(strings.Replace(goldenTransforms, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.new, err, c.want)
		}
	}
	// Plans without transforms are what they were.
	if data, err := goldenPlanValue().MarshalJSON(); err != nil || string(data) != goldenPlan {
		t.Errorf("%s, %v", data, err)
	}
}

func TestPlanRoundTripTransforms(t *testing.T) {
	chains := []string{
		"first(3)", "mod(10)", "hash(1000000, seed=7)", "sigrid_hash(100, salt=3)", "clamp(0, 5)", "log1p",
		"bucketize(1, 5.5)", "cast(float32)",
		"cast(int64)", "fill(0)", "fill", "list", "scores.clamp(0, 1)", "scores.log1p",
	}
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		p.Transforms = make([]transform.Bound, len(p.Features))
		some := false
		for i, f := range p.Features {
			if IsPartitionKey(f) {
				continue
			}
			// What does not fit the type is an error, and is left out.
			if text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(chains), 0, 4).Draw(t,
				"chain of "+f.Type.String()), "|"); text != "" {
				if err := p.SetTransform(i, mustChain(t, text)); err != nil {
					p.Transforms[i] = transform.Bound{}
				} else {
					some = true
				}
			}
		}
		if !some {
			p.Transforms = nil
		}
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
		if some {
			q.Transforms = nil // and Features have the types that came out
			if p.Hash() == q.Hash() {
				t.Fatal("a plan with transforms has the hash of one without")
			}
		}
	})
}

// Validate does not believe types that transforms do not give.
func TestPlanValidateTransforms(t *testing.T) {
	base := func() *Plan {
		p := &Plan{
			Table: "t", Snapshot: 1, BatchSize: 1, Output: OutputColumns, Transforms: make([]transform.Bound, 2),
			Features: []catalog.Feature{{ID: 1, Name: "a", Type: idList}, {ID: 2, Name: "b", Type: floatDense}},
		}
		if err := p.SetTransform(0, mustChain(t, "first(3)")); err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := base().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Plan){
		"its transforms give list<int64>": func(p *Plan) { p.Features[0].Type.Elem = vector.Int32 },
		`not list<int64> "date64"`:        func(p *Plan) { p.Features[0].Logical = "date64" },
		"stored type without transforms":  func(p *Plan) { p.Transforms[1].StoredType = floatDense },
		"transforms of 1 features":        func(p *Plan) { p.Transforms = p.Transforms[:1] },
		"without a transform":             func(p *Plan) { p.Transforms[0] = transform.Bound{} },
		"it takes lists":                  func(p *Plan) { p.Transforms[0].StoredType = floatDense },
		"unknown transform 77":            func(p *Plan) { p.Transforms[0].Chain = transform.Chain{{Op: 77}} },
		"not UTF-8":                       func(p *Plan) { p.Transforms[0].StoredLogical = "\xff" },
		"partition key, which has none":   func(p *Plan) { p.Features[0] = PartitionColumn("ds") },
		"it is given what it does not": func(p *Plan) {
			p.Transforms[0].Chain = transform.Chain{{Op: transform.First,
				N: 3, Seed: 1}}
		},
		"scores have clamp": func(p *Plan) {
			p.Transforms[0].Chain = transform.Chain{{Op: transform.First,
				N: 3, Scores: true}}
		},
		"a value is no Number": func(p *Plan) {
			p.Transforms[0].Chain = transform.Chain{{Op: transform.Fill, Values: make([]transform.Number, 1)}}
		},
		"33 transforms": func(p *Plan) { p.Transforms[0].Chain = slices.Repeat(p.Transforms[0].Chain, 33) },
	} {
		p := base()
		change(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if p.Hash() != 0 {
			t.Errorf("%s: it has a hash", want)
		}
	}
}

// A combination of feature and transform that makes no sense is an error that names both.
func TestTransformTypes(t *testing.T) {
	for _, c := range []struct {
		typ         vector.Type
		logical     string
		chain, want string // want is an error, or a type and a Logical
	}{
		{idList, "timestamp[us]", "first(3)", "list<int64> timestamp[us]"},
		{idList, "timestamp[us]", "mod(3)", "list<int64> "},
		{idList, "timestamp[us]", "clamp(0, 5)|fill(3, 4)", "list<int64> timestamp[us]"},
		{idList, "date64", "clamp(0, 5)", "list<int64> "},
		{idList, "date64", "fill", "list<int64> date64"},
		{idList, "date64", "cast(int64)", "list<int64> date64"},
		{idList, "date64", "cast(int32)", "list<int32> "},
		{scoredList, "map", "first(3)|scores.clamp(0, 1)|fill", "list<int64:float32> map"},
		{scoredList, "map", "mod(3)", "list<int64:float32> "},
		{scoredList, "struct<id, score>", "mod(3)", "list<int64:float32> struct<id, score>"},
		{scoredList, "", "scores.cast(float64)|cast(int8)", "list<int8:float64> "},
		{floatDense, "float16", "clamp(0, 1)", "float32 "},
		{floatDense, "", "log1p|bucketize(1)|list|first(1)", "list<int32> "},
		{vector.Type{Kind: vector.Dense, Elem: vector.Int32}, "date32", "list", "list<int32> date32"},
		{vector.Type{Kind: vector.Dense, Elem: vector.Int8}, "", "mod(128)", "int8 "},
		{vector.Type{Kind: vector.Dense, Elem: vector.Int8}, "", "mod(129)", "int64 "},
		{vector.Type{Kind: vector.Dense, Elem: vector.Uint8}, "", "mod(1000)", "uint8 "},
		{vector.Type{Kind: vector.Embedding, Elem: vector.Float64, Dim: 4}, "", "log1p|cast(int16)", "int16[4] "},
		{stringDense, "json", "hash(10)|list", "list<int64> "},

		{floatDense, "", "first(3)", "first of float32: it takes lists"},
		{floatDense, "", "mod(3)", "mod of float32: it takes integers"},
		{floatDense, "", "log1p|hash(3)", "hash of float32: it takes integers"},
		{floatDense, "", "fill", "fill of float32: 0 values: want one"},
		{floatDense, "", "scores.log1p", "log1p of float32: only weighted features have scores"},
		{floatDense, "", "bucketize(0.1, 0.10000000001)", "are one float32"},
		{idList, "", "list", "list of list<int64>: it takes dense features"},
		{idList, "", "clamp(0, 1.5)", "the bound 1.5 is no integer"},
		{idList, "", "mod(9223372036854775809)", "the range 9223372036854775809 goes beyond int64"},
		{idList, "", "cast(uint8)|clamp(-5, -1)", "clamp of list<uint8>: no uint8 lies between -5 and -1"},
		{idList, "", "cast(uint8)|fill(256)", "fill of list<uint8>: 256 is no uint8"},
		{idList, "", "fill(0.5)", "0.5 is no int64"},
		{scoredList, "", "log1p", "write scores.log1p"},
		{scoredList, "", "cast(float32)", "write scores.cast"},
		{scoredList, "", "scores.cast(int8)", "scores are float32 or float64"},
		{scoredList, "", "fill(7)", "an id comes with a score"},
		{stringDense, "", "first(3)", "first of string: strings and bytes take hash only"},
	} {
		f := transform.Bound{Chain: mustChain(t, c.chain), StoredType: c.typ, StoredLogical: c.logical}
		out, logical, err := f.Output()
		got := out.String() + " " + logical
		if err != nil {
			got = err.Error()
		}
		if err != nil && !strings.Contains(got, c.want) || err == nil && got != c.want {
			t.Errorf("%v %q, %s: %s, want %s", c.typ, c.logical, c.chain, got, c.want)
		}
	}
}

func TestTransformRules(t *testing.T) {
	features := []catalog.Feature{
		{ID: 1, Name: "user_a", Type: idList}, {ID: 2, Name: "user_b", Type: idList},
		{ID: 3, Name: "click", Type: floatDense, Role: catalog.RoleLabel}, PartitionColumn("ds"),
	}
	for _, c := range []struct{ rules, want string }{ // rules and wanted chains, joined by ;
		{"user_*=first(3)", "first(3);first(3);;"},
		{"user_*=first(3);user_b=mod(7)", "first(3);mod(7);;"},
		{"user_b=mod(7);user_*=first(3)", "first(3);mod(7);;"},
		{"@labels=clamp(0, 1)", ";;clamp(0, 1);"},
		{`user\_a=first(1)`, "first(1);;;"},
		{"user_*=first(3);*_b=mod(7)", `!transforms of "user_b": both "user_*" and "*_b" select it`},
		{"user_b=first(3);user_b=mod(7)", `!both "user_b" and "user_b"`},
		{"user_c=first(3)", `!transforms of "user_c": not found among the features of the plan; ` +
			`did you mean "user_a" or "user_b"?`},
		{"item_*=first(3)", `!transforms of "item_*": not found among the features of the plan`},
		{"@all=first(3)", `!transforms of "click": first of float32: it takes lists`},
		{"ds=hash(3)", `!transforms of "ds": it is a partition key`},
		{"@nosuch=first(3)", "!want names, globs"},
	} {
		var rules []transform.Rule
		for _, text := range strings.Split(c.rules, ";") {
			r, err := transform.ParseRule(text)
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, r)
		}
		p := &Plan{Table: "t", Snapshot: 1, BatchSize: 1, Output: OutputColumns, Features: slices.Clone(features)}
		err := p.TransformBy(rules)
		if want, bad := strings.CutPrefix(c.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", c.rules, err, want)
			}
			continue
		}
		if err == nil {
			err = p.Validate()
		}
		var got []string
		for _, x := range p.Transforms {
			got = append(got, x.Chain.String())
		}
		if err != nil || strings.Join(got, ";") != c.want {
			t.Errorf("%s: %v, %v, want %s", c.rules, got, err, c.want)
		}
	}
	p := &Plan{Features: features}
	for want, rule := range map[string]transform.Rule{
		"an empty name":        {Chain: mustChain(t, "log1p")},
		"none given":           {Features: "click"},
		"unknown transform 99": {Features: "click", Chain: transform.Chain{{Op: 99}}},
	} {
		if err := p.TransformBy([]transform.Rule{rule}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func mustChain(t interface{ Fatalf(string, ...any) }, text string) transform.Chain {
	c, err := transform.ParseChain(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}
