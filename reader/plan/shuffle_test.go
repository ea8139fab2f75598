package plan

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

func TestShuffleValidate(t *testing.T) {
	key := catalog.Feature{ID: 9, Name: "s", Role: catalog.RoleSessionKey, Type: goldenPlanValue().Features[1].Type}
	for _, c := range []struct {
		s  Shuffle
		ok bool
	}{
		{Shuffle{}, true},
		{Shuffle{BufferStripes: 1}, false},
		{Shuffle{Seed: 1}, false},
		{Shuffle{Key: key}, false},
		{Shuffle{Unit: UnitRow, BufferStripes: 1}, true},
		{Shuffle{Unit: UnitRow, BufferStripes: 1, Key: key}, true},
		{Shuffle{Unit: UnitRow}, false},
		{Shuffle{Unit: UnitRow, BufferStripes: MaxBufferStripes + 1}, false},
		{Shuffle{Unit: UnitRow + 1, BufferStripes: 1}, false},
		{Shuffle{Unit: UnitSession, BufferStripes: MaxBufferStripes, Seed: math.MaxUint64, Key: key}, true},
		{Shuffle{Unit: UnitSession, BufferStripes: 1}, false},
		{Shuffle{Unit: UnitSession, BufferStripes: 1, Key: catalog.Feature{ID: 9, Name: "s", Type: key.Type}}, false},
		{Shuffle{Unit: UnitSession, BufferStripes: 1, Key: catalog.Feature{ID: 255, Name: "s", Role: key.Role,
			Type: key.Type}}, false},
	} {
		p := goldenPlanValue()
		p.Shuffle = c.s
		if err := p.Validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.s, err)
		}
	}
}

// A shuffle is a part of the encoding, of the hash and of what is printed; none is as in plans from before it.
func TestPlanGoldenShuffle(t *testing.T) {
	p := goldenPlanValue()
	p.Shuffle = Shuffle{
		Unit: UnitSession, BufferStripes: 16, Seed: math.MaxUint64,
		Key: catalog.Feature{ID: 9, Name: "s", Role: catalog.RoleSessionKey, Type: vector.Type{Kind: vector.String}},
	}
	const wire = `"tensors","shuffle":{"order":1,"unit":"session","buffer_stripes":16,"seed":18446744073709551615,` +
		`"key":{"id":"0000000000000009","name":"s","role":"session key","kind":"string"}},`
	golden := strings.Replace(goldenPlan, `"tensors",`, wire, 1)
	data, err := p.MarshalJSON()
	if err != nil || string(data) != golden {
		t.Fatalf("got  %s, %v\nwant %s", data, err, golden)
	}
	if h := p.Hash(); h != 0xf4ea598e5c618990 {
		t.Errorf("hash %016x", h)
	}
	const line = "\nshuffle    session, buffers of 16 stripes, seed 18446744073709551615, sessions by s\n"
	if !strings.Contains(p.String(), line) {
		t.Errorf("%s lacks %s", p, line)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"order":1`, `"order":2`, "order 2: this reader knows 1"},
		{`"unit":"session"`, `"unit":"none"`, "none is not written"},
		{`"unit":"session"`, `"unit":"sessions"`, "want none, session or row"},
		{`"buffer_stripes":16`, `"buffer_stripes":0`, "buffer of 0 stripes"},
		{`"seed":18446744073709551615`, `"seed":-1`, "seed"},
		{`"role":"session key"`, `"role":"user key"`, "not a session key"},
		{`"session key","kind":"string"`, `"session key","kind":"strings"`, "strings"},
	} {
		var p Plan
		if err := p.UnmarshalJSON([]byte(strings.Replace(golden, c.old, c.new, 1))); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.new, err, c.want)
		}
	}
}

// The session key is the projection's, or the table's, which reads the schema; a table without one can be shuffled by
// row.
func TestShuffleFindsKey(t *testing.T) {
	key := catalog.Feature{ID: 9, Name: "s", Role: catalog.RoleSessionKey, Type: vector.Type{Kind: vector.String}}
	plain := catalog.Feature{ID: 1, Name: "a"}
	for _, c := range []struct {
		s         Shuffle
		schema    []catalog.Feature
		projected []catalog.Feature
		want      Shuffle
		keyFinds  int
		err       string
	}{
		{schema: []catalog.Feature{plain, key}, projected: []catalog.Feature{plain}},
		{
			s: Shuffle{Unit: UnitSession}, schema: []catalog.Feature{plain, key}, projected: []catalog.Feature{plain},
			want: Shuffle{Unit: UnitSession, BufferStripes: DefaultBufferStripes, Key: key}, keyFinds: 1,
		},
		{
			s: Shuffle{Unit: UnitSession, BufferStripes: 3, Seed: 4}, schema: []catalog.Feature{plain,
				key}, projected: []catalog.Feature{plain, key},
			want: Shuffle{Unit: UnitSession, BufferStripes: 3, Seed: 4, Key: key},
		},
		{
			s: Shuffle{Unit: UnitRow}, schema: []catalog.Feature{plain}, projected: []catalog.Feature{plain},
			want: Shuffle{Unit: UnitRow, BufferStripes: DefaultBufferStripes}, keyFinds: 1,
		},
		{
			s: Shuffle{Unit: UnitSession}, schema: []catalog.Feature{plain}, projected: []catalog.Feature{plain},
			err: "shuffle by row, or ingest it with a session key", keyFinds: 1,
		},
		{s: Shuffle{Unit: UnitSession, Key: key}, err: "leave Key empty"},
	} {
		schema := &fakeSchema{features: c.schema}
		got, err := c.s.find(context.Background(), schema, c.projected)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v: %v, want %q", c.s, err, c.err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%+v: %+v, %v, want %+v", c.s, got, err, c.want)
		}
		if schema.whole != 0 || schema.keyFinds != c.keyFinds {
			t.Errorf("%+v: the schema is read %d times, want 0, its keys %d times, want %d", c.s, schema.whole,
				schema.keyFinds, c.keyFinds)
		}
	}
}
