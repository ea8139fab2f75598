package versus

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
)

// HashSide makes groups of the lists that another side gives, as readers do that do not know what the writer knew: it
// hashes every row's lists of a group, finds the rows whose hashes are equal, and copies the lists of the first of each.
//
//	row's lists of the group ──xxhash64──> table of the batch ──> slot; a new one: its lists are copied
//
// It is kind to the peer: which features make a group is told, equal hashes count as equal lists, and groups are hashed
// side by side where there are threads.
type HashSide struct {
	Label string
	Side  Side
	// Groups are places of features, each a group. Lists that are in none are given as they are.
	Groups [][]int32

	// ScanSeconds, HashSeconds and CopySeconds are of the last epoch, over all threads.
	ScanSeconds, HashSeconds, CopySeconds float64
	// SlotRows and Slots are those of a reader.Batch, of all batches of the last epoch.
	SlotRows, Slots uint64
}

// Name returns the side's label.
func (s *HashSide) Name() string { return s.Label }

// Bytes returns what the side that is hashed reads.
func (s *HashSide) Bytes(ctx context.Context) (int64, error) { return s.Side.Bytes(ctx) }

// Epoch gives every batch of the side with groups: each feature's lists are those of its group's slots.
func (s *HashSide) Epoch(ctx context.Context, threads int, each Each) error {
	makers := make([]hashGroup, len(s.Groups))
	out := new(reader.Tensors)
	out.Groups = make([]reader.Group, len(s.Groups))
	s.ScanSeconds, s.HashSeconds, s.CopySeconds, s.SlotRows, s.Slots = 0, 0, 0, 0, 0
	groupOf := map[int32]int{}
	for i, g := range s.Groups {
		out.Groups[i].Features = g
		for _, f := range g {
			groupOf[f] = i
		}
	}
	scan := time.Now()
	err := s.Side.Epoch(ctx, threads, func(t *reader.Tensors, rows int) error {
		s.ScanSeconds += time.Since(scan).Seconds()
		out.Dense, out.Labels, out.Embeddings = t.Dense, t.Labels, t.Embeddings
		side := func(do func(i int)) {
			var wg sync.WaitGroup
			for k := range min(threads, len(makers)) {
				work := func() {
					for i := k; i < len(makers); i += threads {
						do(i)
					}
				}
				if threads == 1 {
					work()
				} else {
					wg.Go(work)
				}
			}
			wg.Wait()
		}
		side(func(i int) { makers[i].make(&out.Groups[i], t, rows) })
		for _, x := range []struct{ out, from *reader.Jagged }{{&out.Sparse, &t.Sparse}, {&out.Weighted, &t.Weighted}} {
			s.copies(x.out, x.from, makers, groupOf, rows, side)
			s.SlotRows += uint64(rows * len(x.from.Features))
			s.Slots += uint64(len(x.out.Lengths))
		}
		err := each(out, rows)
		scan = time.Now()
		return err
	})
	for i := range makers { // beside what was copied in no group
		s.HashSeconds += makers[i].hashing.Seconds()
		s.CopySeconds += makers[i].copying.Seconds()
	}
	return err
}

// copies makes out the lists of j: of each feature those of its group's slots, or of every row where it is in none. side does
// groups side by side.
func (s *HashSide) copies(out, j *reader.Jagged, makers []hashGroup, groupOf map[int32]int, rows int, side func(func(int))) {
	start := time.Now()
	out.Features = j.Features
	out.Groups, out.First = sized(out.Groups, len(j.Features)), append(out.First[:0], 0)
	words := 0
	for k, f := range j.Features {
		lists := rows
		if i, ok := groupOf[f]; ok {
			out.Groups[k], lists = int32(i), len(makers[i].first)
		} else {
			out.Groups[k] = int32(len(makers))
		}
		out.First = append(out.First, out.First[k]+lists)
		words += vector.BitmapWords(lists)
	}
	lists := out.First[len(j.Features)]
	out.Lengths, out.Offsets, out.Present = sized(out.Lengths, lists), sized(out.Offsets, lists+1), sized(out.Present, words)
	clear(out.Present)
	took := time.Since(start)
	side(func(i int) { makers[i].lengths(out, j, i, rows) })
	start = time.Now()
	for k := range j.Features {
		if int(out.Groups[k]) == len(makers) {
			copy(out.Lengths[out.First[k]:out.First[k+1]], j.Lengths[k*rows:(k+1)*rows])
			copy(out.PresentOf(k), j.PresentOf(k))
		}
	}
	n := int32(0)
	out.Offsets[0] = 0
	for i, length := range out.Lengths {
		n += length
		out.Offsets[i+1] = n
	}
	out.Values = sized(out.Values, int(n))
	if j.Weights != nil {
		out.Weights = sized(out.Weights, int(n))
	}
	for k := range j.Features {
		if int(out.Groups[k]) == len(makers) {
			at, from, to := out.Offsets[out.First[k]], j.Offsets[k*rows], j.Offsets[(k+1)*rows]
			copy(out.Values[at:], j.Values[from:to])
			if j.Weights != nil {
				copy(out.Weights[at:], j.Weights[from:to])
			}
		}
	}
	took += time.Since(start)
	side(func(i int) { makers[i].copy(out, j, i, rows) })
	s.CopySeconds += took.Seconds()
}

// A hashGroup is the memory of one group, used for every batch.
type hashGroup struct {
	hashes  []uint64
	table   []hashEntry
	round   uint32
	inverse []int32
	first   []int32 // of each slot, its first row

	hashing, copying time.Duration
}

type hashEntry struct {
	hash  uint64
	round uint32 // of the batch that it is of
	slot  int32
}

// make finds the inverse of g in a batch of plain lists.
func (x *hashGroup) make(g *reader.Group, t *reader.Tensors, rows int) {
	start := time.Now()
	x.hashes = sized(x.hashes, rows)
	clear(x.hashes)
	sparse, weighted := placesOf(&t.Sparse, g.Features), placesOf(&t.Weighted, g.Features)
	for _, k := range sparse {
		x.hash(&t.Sparse, k, rows)
	}
	for _, k := range weighted {
		x.hash(&t.Weighted, k, rows)
	}
	x.find(rows)
	x.hashing += time.Since(start)
	g.Inverse, g.Slots = x.inverse, len(x.first)
}

func sized[T any](s []T, n int) []T {
	if n > cap(s) {
		return make([]T, n)
	}
	return s[:n]
}

// placesOf returns where in j features are.
func placesOf(j *reader.Jagged, features []int32) []int {
	var out []int
	for k, f := range j.Features {
		for _, g := range features {
			if f == g {
				out = append(out, k)
			}
		}
	}
	return out
}

// hash mixes each row's list of the k-th of j's features into its hash.
func (x *hashGroup) hash(j *reader.Jagged, k, rows int) {
	present := j.PresentOf(k)
	for r := range rows {
		from, to := j.Offsets[k*rows+r], j.Offsets[k*rows+r+1]
		h := uint64(to - from)
		if present != nil && !present.Get(r) {
			h = math.MaxUint64
		}
		if from < to {
			h ^= xxhash.Sum64(bytesOf(j.Values[from:to]))
			if j.Weights != nil {
				h = bits.RotateLeft64(h, 31) ^ xxhash.Sum64(bytesOf(j.Weights[from:to]))
			}
		}
		x.hashes[r] = (bits.RotateLeft64(x.hashes[r], 27) ^ h) * 0x9e3779b185ebca87
	}
}

// find gives equal hashes one slot.
func (x *hashGroup) find(rows int) {
	if size := 1 << bits.Len(uint(2*rows)); len(x.table) < size {
		x.table, x.round = make([]hashEntry, size), 0
	}
	x.round++
	x.inverse, x.first = sized(x.inverse, rows), x.first[:0]
	mask := uint64(len(x.table) - 1)
	for r, h := range x.hashes {
		at := h >> 20 & mask
		for ; ; at = (at + 1) & mask {
			e := &x.table[at]
			if e.round != x.round {
				*e = hashEntry{h, x.round, int32(len(x.first))}
				x.first = append(x.first, int32(r))
			}
			if e.hash == h {
				x.inverse[r] = e.slot
				break
			}
		}
	}
}

// lengths makes the lengths and the presence of the slots of group i's features, which are those of their first rows.
func (x *hashGroup) lengths(out, j *reader.Jagged, i, rows int) {
	start := time.Now()
	for k := range j.Features {
		if int(out.Groups[k]) != i {
			continue
		}
		present, to := j.PresentOf(k), out.PresentOf(k)
		for s, r := range x.first {
			out.Lengths[out.First[k]+s] = j.Lengths[k*rows+int(r)]
			if present != nil && present.Get(int(r)) {
				to.Set(s)
			}
		}
	}
	x.copying += time.Since(start)
}

// copy makes the values of the slots of group i's features.
func (x *hashGroup) copy(out, j *reader.Jagged, i, rows int) {
	start := time.Now()
	for k := range j.Features {
		if int(out.Groups[k]) != i {
			continue
		}
		for s, r := range x.first {
			from, end := j.Offsets[k*rows+int(r)], j.Offsets[k*rows+int(r)+1]
			at := out.Offsets[out.First[k]+s]
			copy(out.Values[at:], j.Values[from:end])
			if j.Weights != nil {
				copy(out.Weights[at:], j.Weights[from:end])
			}
		}
	}
	x.copying += time.Since(start)
}

// GroupsOf returns the groups of a side's first batch: what a user would have to tell a reader that hashes.
func GroupsOf(ctx context.Context, s *StoreSide) ([][]int32, error) {
	var out [][]int32
	err := s.Epoch(ctx, 1, func(t *reader.Tensors, _ int) error {
		if out == nil {
			for i := range t.Groups {
				out = append(out, slices.Clone(t.Groups[i].Features))
			}
		}
		return nil
	})
	return out, err
}
