package reader

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/execution"
)

// The global order has each batch once, a shard's batches in the plan's order, and no shard is more than one behind.
func TestShardsAreABijection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Shards{Batches: rapid.Uint64Range(0, 200).Draw(t, "batches"),
			Count: rapid.IntRange(1, 40).Draw(t, "shards")}
		end := uint64(0)
		for c := range s.Count {
			first, last := s.Block(c)
			if first != end || last < first || last-first-s.Batches/uint64(s.Count) > 1 {
				t.Fatalf("shard %d has batches [%d, %d), the one before ends at %d", c, first, last, end)
			}
			end = last
		}
		if end != s.Batches {
			t.Fatalf("shards end at %d", end)
		}
		seen := map[uint64]bool{}
		next := make([]uint64, s.Count)
		for j := range s.Batches {
			shard, batch := s.At(j)
			first, _ := s.Block(shard)
			if seen[batch] || batch != first+next[shard] || shard != int(j%uint64(s.Count)) {
				t.Fatalf("batch %d of the global order is %d of shard %d", j, batch, shard)
			}
			seen[batch] = true
			next[shard]++
		}
	})
}

// ranked reads what one rank gets from a position on: positions in the global order and the rows of each batch.
func (x *shuffled) ranked(t *rapid.T, s *RankScanner, p Position, begin uint64, stop int) (at []uint64,
	batches [][]int) {
	x.info = s.opts.Info
	if err := s.Seek(p, begin); err != nil {
		t.Fatal(err)
	}
	for stop < 0 || len(at) < stop {
		b, j, err := s.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, j)
		batches = append(batches, x.numbers(t, b))
		b.Release()
	}
	return at, batches
}

// Whatever the number of ranks, and wherever they are restarted with another, together they give the global order: that
// of one rank, each row once an epoch.
func TestRanksGiveTheGlobalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawShuffled(t, shuffledShape)
		epoch := rapid.Uint64Range(0, 2).Draw(t, "epoch")
		ranks := Ranks{World: 1, Shards: rapid.IntRange(1, 9).Draw(t, "shards"),
			DropLast: rapid.Bool().Draw(t, "drop last")}
		rank := func(r Ranks) *RankScanner {
			s, err := x.layout.OpenRank(drawOptions(t), r)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		alone := rank(ranks)
		defer alone.Close()
		positions, want := x.ranked(t, alone, Position{Epoch: epoch}, 0, -1)
		if uint64(len(positions)) != alone.Batches() {
			t.Fatalf("%d batches, want %d", len(positions), alone.Batches())
		}
		plain := open(t, x.layout, drawOptions(t))
		defer plain.Close()
		all := x.epoch(t, plain, Position{Epoch: epoch})
		if ranks.DropLast && len(all) > 0 && len(all[len(all)-1]) < x.layout.plan.BatchSize {
			all = all[:len(all)-1]
		}
		shards := Shards{Batches: uint64(len(all)), Count: ranks.Shards}
		for j := range want {
			if _, batch := shards.At(uint64(j)); positions[j] != uint64(j) || !slices.Equal(want[j], all[batch]) {
				t.Fatalf("batch %d of the global order has rows %v, want %v", j, want[j], all[batch])
			}
		}
		from := 0
		for from < len(want) {
			ranks.World = rapid.IntRange(1, 8).Draw(t, "world")
			ranks.Workers = rapid.IntRange(0, 3).Draw(t, "workers")
			rounds := rapid.IntRange(1, 4).Draw(t, "rounds") // before the next restart
			end := min(from+rounds*ranks.World, len(want))
			if ranks.DropLast {
				end -= (end - from) % ranks.World
			}
			given := map[int]bool{}
			for r := range ranks.World {
				for w := range max(ranks.Workers, 1) {
					ranks.Rank, ranks.Worker = r, w
					s := rank(ranks)
					at, got := x.ranked(t, s, Position{Epoch: epoch, Batch: uint64(from)}, uint64(from), -1)
					last := len(want)
					if ranks.DropLast {
						last -= (last - from) % ranks.World
					}
					if s.End() != uint64(last) {
						t.Fatalf("%d ranks from %d of %d batches end at %d, want %d", ranks.World, from, len(want),
							s.End(), last)
					}
					turns := 0
					for j := from + r + w*ranks.World; j < last; j += ranks.World * max(ranks.Workers, 1) {
						if turns >= len(at) || at[turns] != uint64(j) || !slices.Equal(got[turns], want[j]) {
							t.Fatalf("rank %d of %d, worker %d: batches %v, want %d in place %d", r, ranks.World, w, at,
								j, turns)
						}
						if j < end {
							given[j] = true
						}
						turns++
					}
					if turns != len(at) {
						t.Fatalf("rank %d of %d, worker %d: %d batches, want %d", r, ranks.World, w, len(at), turns)
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if len(given) != end-from {
				t.Fatalf("%d ranks gave %d batches of [%d, %d)", ranks.World, len(given), from, end)
			}
			if end == from {
				break // fewer are left than there are ranks
			}
			from = end
		}
	})
}

// Where the number of ranks divides that of shards, all of them together read little more than one scanner does.
func TestRanksReadTheirOwnBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawShuffled(t, tableShape{features: 2, segments: 1, stripes: 40, stripeRows: 9, sessions: true})
		x.layout.plan.Shuffle = Shuffle{}
		world := rapid.IntRange(1, 4).Draw(t, "world")
		shards := world * rapid.IntRange(1, 2).Draw(t, "shards a rank")
		cost, err := x.layout.Cost(context.Background(), Options{GapBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		stripes, read := uint64(0), uint64(0)
		for r := range world {
			s, err := x.layout.OpenRank(Options{GapBytes: -1, Presence: true, RoundIntegers: true},
				Ranks{Rank: r, World: world, Shards: shards})
			if err != nil {
				t.Fatal(err)
			}
			x.ranked(t, s, Position{}, 0, -1)
			read += s.Stats().BytesNeeded
			s.Close()
		}
		for i := range x.layout.segments {
			g, err := x.layout.loadSegment(context.Background(), i)
			if err != nil {
				t.Fatal(err)
			}
			for k := range g.Stripes() {
				one := uint64(0)
				for j := range g.Files {
					one += g.Files[j].Entry.Meta.Stripes[k].Length
				}
				stripes = max(stripes, one)
			}
		}
		if most := cost.BytesNeeded + uint64(shards)*stripes; read < cost.BytesNeeded || read > most {
			t.Fatalf("%d ranks, %d shards: read %d bytes, want %d to %d", world, shards, read, cost.BytesNeeded, most)
		}
	})
}

// However many shards a rank reads of, no more batches are made than MaxBatches and those that come back, and all are
// freed.
func TestRanksMakeMaxBatchesInSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawShuffled(t, shuffledShape)
		opts := drawOptions(t)
		alloc := &countingAllocator{live: map[*byte]int{}}
		opts.Allocator, opts.Reuse = alloc, false
		s, err := x.layout.OpenRank(opts, Ranks{World: rapid.IntRange(1, 3).Draw(t, "world"), Shards: rapid.IntRange(1,
			9).Draw(t, "shards")})
		if err != nil {
			t.Fatal(err)
		}
		for {
			b, _, err := s.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
			made := s.pools.Batches.Counts().Made
			if made > s.opts.MaxBatches+batch.KeptIdle {
				t.Fatalf("%d batches made, at most %d wanted", made, s.opts.MaxBatches+batch.KeptIdle)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := alloc.check(); err != nil {
			t.Fatal(err)
		}
	})
}

// Batches that are large are not made as many ahead as small ones, for a rank or for a scan.
func TestMakesAheadBytes(t *testing.T) {
	table := plainTable(t, plainShape{sparse: 2, segments: 1, stripes: 8, stripeRows: 256, session: 4})
	layout := table.dedupLayout(indices(2), 64, OutputTensors, DedupKJT)
	most := func(rank bool, ahead int64) (made int) {
		opts := Options{AheadBytes: ahead, MaxBatches: 12, MemoryBudget: 1 << 30}
		var next func() (*Batch, error)
		var pools *execution.Pools
		if rank {
			s, err := layout.OpenRank(opts, Ranks{World: 1, Shards: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			pools, next = s.pools, func() (*Batch, error) { b, _, err := s.Next(t.Context()); return b, err }
		} else {
			s := open(t, layout, opts)
			defer s.Close()
			pools, next = s.x.Pools, func() (*Batch, error) { return s.Next(t.Context()) }
		}
		for {
			b, err := next()
			if errors.Is(err, io.EOF) {
				return made
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Millisecond) // all that may be made are
			made = max(made, pools.Batches.Counts().Made)
			b.Release()
		}
	}
	for _, rank := range []bool{false, true} {
		if made := most(rank, 1); made > 3 { // two, and one that was released
			t.Errorf("rank %v: %d batches are made ahead", rank, made)
		}
		if made := most(rank, -1); made < 8 {
			t.Errorf("rank %v: %d batches are made ahead where nothing bounds their bytes", rank, made)
		}
	}
}
