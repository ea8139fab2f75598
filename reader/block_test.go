package reader

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/reader/memory"
)

// A parsedBlock is what a reader that knows BATCH.md alone finds in a block.
type parsedBlock struct {
	rows, index, first uint64
	words              map[string][]uint64 // of each array that is there, its elements bit for bit
}

var elementBytes = map[string]uint64{"int32": 4, "int64": 8, "uint64": 8, "float32": 4, "float64": 8, "byte": 1}

// parseBlock reads a block byte by byte.
func parseBlock(b []byte, schema []Array) (*parsedBlock, error) {
	u64 := func(at uint64) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	if string(b[:8]) != "DSIBATCH" || binary.LittleEndian.Uint32(b[8:]) != 1 ||
		binary.LittleEndian.Uint32(b[12:]) != uint32(len(schema)) || u64(16) != uint64(len(b)) {
		return nil, fmt.Errorf("header %q", b[:64])
	}
	p := &parsedBlock{index: u64(24), first: u64(32), rows: u64(40), words: map[string][]uint64{}}
	end := uint64(64+16*len(schema)+63) &^ 63
	for i, a := range schema {
		at, n, size := u64(uint64(64+16*i)), u64(uint64(72+16*i)), elementBytes[a.Type]
		if n == 0 {
			if at != 0 {
				return nil, fmt.Errorf("%s is absent at %d", a.Name, at)
			}
			continue
		}
		if at%64 != 0 || at+n*size > uint64(len(b)) || at < uint64(64+16*len(schema)) {
			return nil, fmt.Errorf("%s: %d elements at %d of %d", a.Name, n, at, len(b))
		}
		end = max(end, (at+n*size+63)&^63)
		for k := range n {
			switch x := b[at+k*size:]; size {
			case 1:
				p.words[a.Name] = append(p.words[a.Name], uint64(x[0]))
			case 4:
				p.words[a.Name] = append(p.words[a.Name], uint64(binary.LittleEndian.Uint32(x)))
			case 8:
				p.words[a.Name] = append(p.words[a.Name], binary.LittleEndian.Uint64(x))
			}
		}
	}
	if end > uint64(len(b)) {
		return nil, fmt.Errorf("arrays end at %d of %d", end, len(b))
	}
	return p, nil
}

// checkBlock compares the block of a batch with its columns and tensors, and says that nothing of them lies elsewhere.
func checkBlock(t interface{ Fatalf(string, ...any) }, b *Batch) {
	p, err := parseBlock(b.Block(), b.Schema().Arrays)
	if err != nil {
		t.Fatalf("block: %v", err)
	}
	if p.rows != uint64(b.Rows) || p.index != b.Index || p.first != b.FirstRow {
		t.Fatalf("block of %d rows from %d, index %d", p.rows, p.first, p.index)
	}
	is := func(name string, want []uint64) {
		if !slices.Equal(p.words[name], want) {
			t.Fatalf("block: %s is %v, want %v", name, p.words[name], want)
		}
		delete(p.words, name)
	}
	groups := func(list []Group) {
		var first, features, slots []uint64
		for _, g := range list {
			first = append(first, uint64(len(features)))
			features, slots = append(features, bits32(g.Features)...), append(slots, uint64(g.Slots))
		}
		if len(list) > 0 {
			first = append(first, uint64(len(features)))
		}
		is("groups.first", first)
		is("groups.features", features)
		is("groups.slots", slots)
	}
	column := 0
	for _, c := range b.Columns {
		if c == nil {
			continue
		}
		name := fmt.Sprintf("column.%d.", column)
		column++
		is(name+"present", c.Present)
		if c.Type.IsList() {
			is(name+"offsets", bits32(c.Offsets))
			is(name+"lengths", bits32(c.Lengths))
		}
		is(name+"values", slices.Concat(bits64(c.Ints), bitsOfFloats(c.Floats), bitsOfDoubles(c.Doubles),
			bitsOfBytes(c.Data)))
		is(name+"scores", slices.Concat(bitsOfFloats(c.ScoreFloats), bitsOfDoubles(c.ScoreDoubles)))
		if of := p.words["groups.of_columns"]; of != nil && int(of[column-1]) < len(p.words["groups.slots"]) {
			at := int(of[column-1]) * b.Rows
			if !slices.Equal(p.words["groups.inverses"][at:at+b.Rows], bits32(c.Inverse)) {
				t.Fatalf("block: %s has another inverse", name)
			}
		} else if c.Inverse != nil {
			t.Fatalf("block: %s has no inverse", name)
		}
	}
	x := b.Tensors
	if x == nil {
		return
	}
	groups(x.Groups)
	is("groups.inverses", bits32(x.Inverses))
	matrix := func(name string, m *Matrix) {
		is(name+".values", bitsOfFloats(m.Values))
		is(name+".present", m.Present)
	}
	matrix("dense", &x.Dense)
	matrix("labels", &x.Labels)
	if n := binary.LittleEndian.Uint64(b.Block()[48:]); n != uint64(b.NullLabels) {
		t.Fatalf("block: %d null labels, want %d", n, b.NullLabels)
	}
	for i := range x.Embeddings {
		matrix(fmt.Sprintf("embedding.%d", i), &x.Embeddings[i])
	}
	for name, j := range map[string]*Jagged{"sparse": &x.Sparse, "weighted": &x.Weighted, "floats": &x.Floats} {
		is(name+".first_list", bits32(j.First))
		is(name+".first_value", bits32(j.FirstValue))
		is(name+".groups", bits32(j.Groups))
		is(name+".lengths", bits32(j.Lengths))
		is(name+".offsets", bits32(j.Offsets))
		is(name+".starts", bits32(j.Starts))
		is(name+".values", slices.Concat(bits64(j.Values), bitsOfFloats(j.FloatValues)))
		is(name+".weights", bitsOfFloats(j.Weights))
		is(name+".present", j.Present)
		is(name+".row_values", bits64(j.RowValues))
		for k := range j.Features {
			from, to := j.Lists(k)
			n := j.FirstValue[k+1] - j.FirstValue[k]
			if j.Offsets != nil && n != j.Offsets[to]-j.Offsets[from] {
				t.Fatalf("block: %s: feature %d has %d values", name, k, n)
			}
		}
	}
	if len(p.words) > 0 {
		t.Fatalf("block: arrays that the batch does not have: %v", p.words)
	}
}

func bitsOf[T any](s []T, bits func(T) uint64) []uint64 {
	var out []uint64
	for _, v := range s {
		out = append(out, bits(v))
	}
	return out
}

func bits32(s []int32) []uint64 { return bitsOf(s, func(v int32) uint64 { return uint64(uint32(v)) }) }
func bits64(s []int64) []uint64 { return bitsOf(s, func(v int64) uint64 { return uint64(v) }) }
func bitsOfFloats(s []float32) []uint64 {
	return bitsOf(s, func(v float32) uint64 { return uint64(math.Float32bits(v)) })
}
func bitsOfDoubles(s []float64) []uint64 { return bitsOf(s, math.Float64bits) }
func bitsOfBytes(s []byte) []uint64      { return bitsOf(s, func(v byte) uint64 { return uint64(v) }) }

// The block of a batch that is released is overwritten, and an allocator gets back whole what it gave, once: a block a
// batch.
func TestBlockIsReleased(t *testing.T) {
	table := plainTable(t, plainShape{dense: 2, sparse: 3, segments: 1, stripes: 2, stripeRows: 256, session: 4})
	for _, output := range []Output{OutputColumns, OutputTensors} {
		a := &countingAllocator{live: map[*byte]int{}}
		// One batch: nothing uses its memory again.
		s := open(t, table.dedupLayout(indices(len(table.features)), 512, output, DedupIKJT),
			Options{Workers: 1, MaxBatches: 1, Allocator: a})
		b, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		checkBlock(t, b)
		if len(a.live) != 1 || a.live[&b.Block()[0]] < len(b.Block()) {
			t.Errorf("%s: memory %v for a block of %d bytes", output, a.live, len(b.Block()))
		}
		block := b.Block()
		b.Release()
		if memory.Invariants && slices.ContainsFunc(block, func(v byte) bool { return v != 0xDB }) {
			t.Errorf("%s: a released block is not overwritten", output)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// With KeepSlots a plan of DedupKJT gives slots, and its lists expand to those that it gives without.
func TestKeepSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		layout := table.layout(drawProjection(t, table), rapid.IntRange(1, 50).Draw(t, "batch"), OutputTensors)
		opts := Options{Workers: 2, Presence: rapid.Bool().Draw(t, "presence"), RoundIntegers: true}
		plain := open(t, layout, opts)
		defer plain.Close()
		opts.KeepSlots = true
		kept := open(t, layout, opts)
		defer kept.Close()
		for {
			want, err := plain.Next(context.Background())
			got, gotErr := kept.Next(context.Background())
			if (err == nil) != (gotErr == nil) || err != nil && err.Error() != gotErr.Error() {
				t.Fatalf("%v, want %v", gotErr, err)
			}
			if err != nil {
				return
			}
			checkBlock(t, got)
			for kind, lists := range map[string][2]*Jagged{
				"sparse":   {&got.Tensors.Sparse, &want.Tensors.Sparse},
				"weighted": {&got.Tensors.Weighted, &want.Tensors.Weighted},
				"floats":   {&got.Tensors.Floats, &want.Tensors.Floats},
			} {
				var j Jagged
				if err := got.Tensors.Expand(&j, lists[0]); err != nil {
					t.Fatal(err)
				}
				w := lists[1]
				if len(w.Features) > 0 && (!slices.Equal(j.Lengths, w.Lengths) || !slices.Equal(j.Offsets, w.Offsets) ||
					!slices.Equal(j.Values, w.Values) ||
					!slices.Equal(bitsOfFloats(j.Weights), bitsOfFloats(w.Weights)) ||
					!slices.Equal(bitsOfFloats(j.FloatValues), bitsOfFloats(w.FloatValues))) {
					t.Fatalf("%s: %+v, want %+v", kind, j, *w)
				}
				for k := range w.Features {
					if n := lists[0].RowValues[k]; n != int64(w.FirstValue[k+1]-w.FirstValue[k]) || w.RowValues != nil {
						t.Fatalf("%s: feature %d has %d values in rows, want those of %v", kind, k, n, w.FirstValue)
					}
					for i := range want.Rows {
						if opts.Presence && j.PresentOf(k).Get(i) != w.PresentOf(k).Get(i) {
							t.Fatalf("%s: feature %d, row %d: other presence", kind, k, i)
						}
					}
				}
			}
			want.Release()
			got.Release()
		}
	})
}
