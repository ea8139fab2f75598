package ingest

import (
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/writer"
)

func dense(e vector.Elem) vector.Type { return vector.Type{Kind: vector.Dense, Elem: e} }

// TestSchemaRefusesByName: what cannot be one feature is refused, naming it and where each side comes from.
func TestSchemaRefusesByName(t *testing.T) {
	known := []catalog.Feature{
		{ID: 1, Name: "age", Type: dense(vector.Int8)},
		{ID: 2, Name: "when", Type: dense(vector.Int64), Logical: "timestamp[us]"},
		{ID: 3, Name: "sid", Type: dense(vector.Int64), Role: catalog.RoleSessionKey},
		{ID: 4, Name: "m.a", Type: dense(vector.Float32), OriginColumn: "m", OriginKey: "a"},
		{ID: 5, Name: "price", Type: dense(vector.Int64), Logical: "decimal(10, 2)"},
	}
	ids := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	for _, c := range []struct {
		name   string
		fields []source.Field // of files a, b, ...
		want   []string       // parts of the error; none: no error
	}{
		{"widened", []source.Field{{Name: "x", Type: dense(vector.Int8)}, {Name: "x", Type: dense(vector.Int32)}}, nil},
		{"kinds", []source.Field{{Name: "x", Type: dense(vector.Int8)}, {Name: "x", Type: ids}},
			[]string{`"x"`, "int8 in file a", "list<int64> in file b", "--mapping"}},
		{"not exact", []source.Field{{Name: "x", Type: dense(vector.Int64)}, {Name: "x", Type: dense(vector.Float64)}},
			[]string{`"x"`, "int64 in file a", "float64 in file b"}},
		{"table's kind", []source.Field{{Name: "age", Type: ids}}, []string{`"age"`, "int8 in the table",
			"list<int64> in file a"}},
		{"table's logical", []source.Field{{Name: "when", Type: dense(vector.Int64), Logical: "timestamp[ms]"}},
			[]string{`"when"`, "timestamp[us]", "timestamp[ms]", "file a", `{"timestamp": "us"}`}},
		{"precisions", []source.Field{{Name: "x", Type: dense(vector.Int64), Logical: "decimal(5, 2)"}, {Name: "x",
			Type: dense(vector.Int64), Logical: "decimal(9, 2)"},
			{Name: "x", Type: dense(vector.Int64), Logical: "decimal(3, 2)"}}, nil},
		{"scales", []source.Field{{Name: "x", Type: dense(vector.Int64), Logical: "decimal(5, 2)"}, {Name: "x",
			Type: dense(vector.Int64), Logical: "decimal(5, 3)"}},
			[]string{"decimal(5, 2)", "decimal(5, 3)", "do not mix"}},
		{"table's precision", []source.Field{{Name: "price", Type: dense(vector.Int64), Logical: "decimal(5, 2)"}},
			nil},
		{"more than the table's precision", []source.Field{{Name: "price", Type: dense(vector.Int64),
			Logical: "decimal(12, 2)"}},
			[]string{"decimal(10, 2)", "decimal(12, 2)", "do not mix"}},
		{"logical", []source.Field{{Name: "x", Type: dense(vector.Int32)}, {Name: "x", Type: dense(vector.Int32),
			Logical: "date32"}},
			[]string{`"x"`, "int32 in file a", "int32 (date32) in file b"}},
		{"no value then values", []source.Field{{Name: "x", Type: dense(vector.Bool), NoValue: true}, {Name: "x",
			Type: ids}}, nil},
		{"values then no value", []source.Field{{Name: "x", Type: ids}, {Name: "x", Type: dense(vector.Bool),
			NoValue: true}}, nil},
		{"two session keys", []source.Field{{Name: "other", Type: dense(vector.Int64), Role: catalog.RoleSessionKey}},
			[]string{`"other"`, "file a", `"sid"`, "session key"}},
		{"new role", []source.Field{{Name: "age", Type: dense(vector.Int8), Role: catalog.RoleLabel}}, []string{`"age"`,
			"label", "file a"}},
		{"time of a known feature", []source.Field{{Name: "when", Type: dense(vector.Int64), Logical: "timestamp[us]",
			Role: catalog.RoleTimeKey}}, nil},
		{"session of lists", []source.Field{{Name: "sid", Type: ids}}, []string{`"sid"`}},
		{"time of strings", []source.Field{{Name: "x", Type: vector.Type{Kind: vector.String},
			Role: catalog.RoleTimeKey}},
			[]string{`"x"`, "time key", "file a"}},
		{"key of two kinds", []source.Field{{Name: "x", Type: dense(vector.Int32), Role: catalog.RoleTimeKey},
			{Name: "x", Type: dense(vector.Float64)}}, []string{"time key", `"x"`, "file a", "file b"}},
		{"origin", []source.Field{{Name: "m.a", Type: dense(vector.Float32)}}, []string{`"m.a"`, "in the table",
			"file a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSchema(known, nil)
			var err error
			for i := range c.fields {
				if _, err = s.bind("file "+string(rune('a'+i)), &c.fields[i]); err != nil {
					break
				}
			}
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("error %v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

// TestCommittedSchema: a dump's feature that the table has keeps its id and role, and its type holds both.
func TestCommittedSchema(t *testing.T) {
	s := newSchema([]catalog.Feature{{ID: 7, Name: "age", Type: dense(vector.Int16), Generation: 2}}, nil)
	x, err := s.bind("a", &source.Field{Name: "age", Type: dense(vector.Uint16), Role: catalog.RoleSessionKey})
	if err != nil {
		t.Fatal(err)
	}
	got, widened, err := x.committed()
	want := catalog.Feature{ID: 7, Name: "age", Type: dense(vector.Int32), Generation: 2}
	if err != nil || !widened || got != want {
		t.Fatalf("%+v, %v, %v: want %+v", got, widened, err, want)
	}
	if stored := x.stored(); stored.Type != dense(vector.Uint16) {
		t.Fatalf("segments hold %v: want the dump's own type", stored.Type)
	}
}

// popular is a Popularity by name.
type popular map[string]float64

func (p popular) Popularity(features []catalog.Feature) []float64 {
	out := make([]float64, len(features))
	for i, f := range features {
		out[i] = p[f.Name]
	}
	return out
}

// TestPackOrder: keys and labels, then what is read most, then from small to large, then by name.
func TestPackOrder(t *testing.T) {
	s := newSchema([]catalog.Feature{{Name: "absent"}}, nil)
	for _, f := range []struct {
		field source.Field
		size  uint64
	}{
		{source.Field{Name: "large", Type: dense(vector.Int64)}, 1000},
		{source.Field{Name: "b", Type: dense(vector.Int64)}, 10},
		{source.Field{Name: "a", Type: dense(vector.Int64)}, 10},
		{source.Field{Name: "click", Type: dense(vector.Int64), Role: catalog.RoleLabel}, 2000},
		{source.Field{Name: "sid", Type: dense(vector.Int64), Role: catalog.RoleSessionKey}, 3000},
	} {
		x, err := s.bind("file", &f.field)
		if err != nil {
			t.Fatal(err)
		}
		x.rawBytes = f.size
	}
	for _, test := range []struct {
		p    writer.Popularity
		want string
	}{
		{nil, "sid click a b large"},
		{popular{}, "sid click a b large"},
		{popular{"large": 2, "b": 1, "sid": 0, "absent": 9}, "sid click large b a"},
	} {
		var names []string
		for _, f := range s.packOrder(test.p) {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("order %q with popularity %v, want %q", got, test.p, test.want)
		}
	}
}

// TestDecimalsOfOneScale: precision widens where the values are stored alike.
func TestDecimalsOfOneScale(t *testing.T) {
	for _, tc := range []struct {
		a, b, want string
		ok         bool
	}{
		{"decimal(5, 2)", "decimal(10, 2)", "decimal(10, 2)", true},
		{"decimal(10, 2)", "decimal(5, 2)", "decimal(10, 2)", true},
		{"decimal(5, 2)", "decimal(5, 3)", "", false},
		{"decimal(38, 2)", "decimal(39, 2)", "", false},
		{"decimal(19, 2)", "decimal(38, 2)", "decimal(38, 2)", true},
		{"decimal(5, 2)", "date32", "", false},
		{"", "decimal(5, 2)", "", false},
	} {
		if got, ok := widerDecimal(tc.a, tc.b); got != tc.want || ok != tc.ok {
			t.Errorf("%s, %s: got %s, %v", tc.a, tc.b, got, ok)
		}
	}
}
