package plan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage/catalog"
)

// wirePlan is the encoding of p as types that encoding/json writes.
func wirePlan(p *Plan) planWire {
	w := planWire{
		Version: Version, Table: p.Table, Snapshot: p.Snapshot, Partition: p.Partition,
		BatchSize: p.BatchSize, Output: p.Output.String(), Features: make([]featureWire, len(p.Features)),
	}
	if p.Dedup != DedupKJT {
		w.Dedup = p.Dedup.String()
	}
	w.Shuffle = wireShuffle(&p.Shuffle)
	for i, f := range p.Features {
		if IsPartitionKey(f) {
			w.Features[i] = featureWire{Name: f.Name, Role: partitionRole, Kind: f.Type.Kind.String(),
				Expanded: p.Expands(int32(i))}
			continue
		}
		x := transform.Bound{StoredType: f.Type, StoredLogical: f.Logical}
		if t := p.transform(i); t != nil {
			x = *t
		}
		f.Type, f.Logical = x.StoredType, x.StoredLogical
		w.Features[i] = wireFeature(f)
		w.Features[i].Transforms = x.Chain.String()
		w.Features[i].Exact, w.Features[i].Expanded = p.IsExact(i), p.Expands(int32(i))
	}
	return w
}

func wireFeature(f catalog.Feature) featureWire {
	return featureWire{
		ID: fmt.Sprintf("%016x", uint64(f.ID)), Name: f.Name, Generation: f.Generation, Role: roleNames[f.Role],
		Kind: f.Type.Kind.String(), Elem: elemName(f.Type.Elem), Score: elemName(f.Type.Score), Dim: f.Type.Dim,
		Logical: f.Logical, OriginColumn: f.OriginColumn, OriginKey: f.OriginKey,
	}
}

func wireShuffle(s *Shuffle) *shuffleWire {
	if s.Unit == UnitNone {
		return nil
	}
	w := &shuffleWire{Order: OrderVersion, Unit: s.Unit.String(), BufferStripes: s.BufferStripes, Seed: s.Seed}
	if s.Key != (catalog.Feature{}) {
		key := wireFeature(s.Key)
		w.Key = &key
	}
	return w
}

// TestPlanIsWrittenAsItsWire: the text that is written by hand is the one that encoding/json makes of the types that a
// plan is read into, and reads back as the same plan.
func TestPlanIsWrittenAsItsWire(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	texts := []string{"", "a", "user_<x>&", "q\"uote\\", "\u2028 ä 日本", "tab\tnul\x00"}
	text := func() string { return texts[rng.IntN(len(texts))] }
	name := func() string { return "n" + text() }
	types := []vector.Type{
		{Kind: vector.Dense, Elem: vector.Int64}, {Kind: vector.Sparse, Elem: vector.Uint32}, {Kind: vector.String},
		{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}, {Kind: vector.Embedding,
			Elem: vector.Float32, Dim: 16},
	}
	written, transformed, shuffled := 0, 0, 0
	for i := range 500 {
		p := &Plan{Table: name(), Snapshot: 1 + rng.Uint64()>>1, Partition: text(), BatchSize: 1 + rng.IntN(9999),
			Output: OutputColumns}
		if rng.IntN(2) == 0 {
			p.Output, p.Dedup = OutputTensors, Dedup(rng.IntN(3))
		}
		for j := range 1 + rng.IntN(4) {
			if rng.IntN(5) == 0 {
				p.Features = append(p.Features, PartitionColumn(fmt.Sprint(name(), j)))
				continue
			}
			p.Features = append(p.Features, catalog.Feature{
				ID: catalog.FeatureID(rng.Uint64N(1000)*10 + uint64(j) + 1), Name: fmt.Sprint(name(),
					j), Generation: uint32(rng.IntN(2)),
				Role: catalog.Role(rng.IntN(len(roleNames))), Type: types[rng.IntN(len(types))], Logical: text(),
				OriginColumn: text(),
				OriginKey:    text(),
			})
		}
		if rng.IntN(2) == 0 {
			for i, f := range p.Features {
				if f.Type.Kind == vector.Sparse {
					p.Transforms = make([]transform.Bound, len(p.Features))
					if err := p.SetTransform(i, mustChain(t, "first(3) | mod(10)")); err != nil {
						t.Fatal(err)
					}
					transformed++
					break
				}
			}
		}
		for i, f := range p.Features {
			if f.Type == types[0] && rng.IntN(2) == 0 {
				p.setExact(i)
			}
		}
		if rng.IntN(2) == 0 {
			p.Shuffle = Shuffle{Unit: UnitRow, BufferStripes: 1 + rng.IntN(9), Seed: rng.Uint64()}
			if rng.IntN(2) == 0 {
				p.Shuffle.Unit = UnitSession
				p.Shuffle.Key = catalog.Feature{ID: 77777, Name: name(), Role: catalog.RoleSessionKey, Type: types[0]}
			}
		}
		if rng.IntN(2) == 0 {
			p.Expanded = make([]bool, len(p.Features))
			p.Expanded[rng.IntN(len(p.Features))] = true
		}
		if p.Validate() != nil {
			continue
		}
		written++
		if p.Shuffle.Key.ID != 0 {
			shuffled++
		}
		want, err := marshal(wirePlan(p))
		if err != nil {
			t.Fatal(err)
		}
		got, hash, err := p.Encode()
		if err != nil || string(got) != string(want) || hash != xxhash.Sum64(want) || hash != p.Hash() {
			t.Fatalf("plan %d: %v\n%s\nwant\n%s", i, err, got, want)
		}
		var again Plan
		if err := json.Unmarshal(got, &again); err != nil || again.Hash() != hash {
			t.Fatalf("plan %d: %v: %s", i, err, got)
		}
	}
	if written < 300 || transformed < 30 || shuffled < 30 {
		t.Errorf("%d plans written, %d with transforms, %d with shuffles", written, transformed, shuffled)
	}
}
