package reader

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/reader/expr"
)

// Of the class a sample stays, with its weight; all else stays with weight 1. The weights are the last label.
func TestDownsample(t *testing.T) {
	ctx := t.Context()
	store, snap := realStore(t)
	const text = "n > 11 AND n != 30 AND sample(0.4, key=n, seed=3)"
	var want []int64
	var weights []float32
	for _, n := range []int64{10, 11, 12, 20, 21, 22, 30, 31, 32} {
		w := float32(1)
		if n > 11 && n != 30 {
			b := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 3), uint64(n))
			if float64(xxhash.Sum64(b)) >= 0.4*0x1p64 {
				continue
			}
			w = 2.5
		}
		want, weights = append(want, n), append(weights, w)
	}
	if len(want) == 9 || !slices.Contains(weights, 2.5) {
		t.Fatalf("the sample says nothing: %v", want)
	}
	for _, output := range []Output{OutputColumns, OutputTensors} {
		for _, dedup := range []Dedup{DedupKJT, DedupIKJT, DedupPartial} {
			plan, err := NewPlan(ctx, snap, PlanOptions{Features: []string{"n"}, Downsample: text, Output: output,
				Dedup: dedup})
			if err != nil {
				t.Fatal(err)
			}
			encoded, err := json.Marshal(plan)
			if err != nil {
				t.Fatal(err)
			}
			travelled := new(Plan)
			if err := json.Unmarshal(encoded, travelled); err != nil || travelled.Downsample != text ||
				travelled.Hash() != plan.Hash() {
				t.Fatalf("%s: %v", encoded, err)
			}
			s, err := OpenPlan(ctx, store, travelled, Options{})
			if err != nil {
				t.Fatal(err)
			}
			b, err := s.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if output == OutputTensors {
				values := b.Tensors.Dense.Values
				for i, n := range want {
					if values[i] != float32(n) {
						t.Errorf("%v: row %d is %v, want %d", dedup, i, values[i], n)
					}
				}
				if !slices.Equal(b.Tensors.Labels.Values, weights) ||
					!slices.Equal(b.Tensors.Labels.Features, []int32{1}) {
					t.Errorf("%v: labels %v, want %v", dedup, b.Tensors.Labels, weights)
				}
			} else if c := b.Columns[1]; !slices.Equal(b.Columns[0].Ints, want) || !slices.Equal(c.Floats, weights) ||
				c.Present != nil || c.Inverse != nil {
				t.Errorf("%v: %v %v, want %v %v", dedup, b.Columns[0].Ints, c.Floats, want, weights)
			}
			b.Release()
			s.Close()
		}
	}
	for text, says := range map[string]string{
		"n > 11":           "column 7: want what is sampled",
		"sample(0, key=n)": "column 1: of a sample of 0 nothing stays",
		"sample(0.5, key=n) AND sample(0.1, key=n)": "column 24: one sample says what stays",
		"n > 11 OR sample(0.5, key=n)":              "want what is sampled",
		"m = 1 AND sample(0.5, key=n)":              "column 1: ",
		"n = AND":                                   "column 5",
	} {
		var place *expr.Error
		if _, err := NewPlan(ctx, snap, PlanOptions{Features: []string{"n"}, Downsample: text}); !errors.As(err,
			&place) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
	plan, err := NewPlan(ctx, snap, PlanOptions{Features: []string{"n"}, Downsample: text})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(p *Plan){
		"without weights":          func(p *Plan) { p.Features = p.Features[:1] },
		"weights alone":            func(p *Plan) { p.Features = p.Features[1:] },
		"weights without a sample": func(p *Plan) { p.Downsample = "" },
		"a name that is taken":     func(p *Plan) { p.Features[0].Name = WeightFeature },
		"a text that is none":      func(p *Plan) { p.Downsample = "n = 1" },
	} {
		p := *plan
		p.Features = slices.Clone(plan.Features)
		change(&p)
		if err := p.Validate(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
