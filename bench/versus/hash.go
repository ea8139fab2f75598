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

	rest [2]reader.Jagged // the lists in no group, where some are in one
}

// Name returns the side's label.
func (s *HashSide) Name() string { return s.Label }

// Bytes returns what the side that is hashed reads.
func (s *HashSide) Bytes(ctx context.Context) (int64, error) { return s.Side.Bytes(ctx) }

// Epoch gives every batch of the side with groups in place of their lists.
func (s *HashSide) Epoch(ctx context.Context, threads int, each Each) error {
	makers := make([]hashGroup, len(s.Groups))
	out := new(reader.Tensors)
	out.Groups = make([]reader.Group, len(s.Groups))
	s.ScanSeconds, s.HashSeconds, s.CopySeconds, s.SlotRows, s.Slots = 0, 0, 0, 0, 0
	grouped := map[int32]bool{}
	for i, g := range s.Groups {
		out.Groups[i].Features = g
		for _, f := range g {
			grouped[f] = true
		}
	}
	scan := time.Now()
	err := s.Side.Epoch(ctx, threads, func(t *reader.Tensors, rows int) error {
		s.ScanSeconds += time.Since(scan).Seconds()
		out.Dense, out.Labels, out.Embeddings = t.Dense, t.Labels, t.Embeddings
		out.Sparse = *without(&s.rest[0], &t.Sparse, rows, grouped)
		out.Weighted = *without(&s.rest[1], &t.Weighted, rows, grouped)
		var wg sync.WaitGroup
		for k := range min(threads, len(makers)) {
			work := func() {
				for i := k; i < len(makers); i += threads {
					makers[i].make(&out.Groups[i], t, rows)
				}
			}
			if threads == 1 {
				work()
			} else {
				wg.Go(work)
			}
		}
		wg.Wait()
		s.SlotRows += uint64(rows * (len(t.Sparse.Features) + len(t.Weighted.Features)))
		s.Slots += uint64(rows * (len(out.Sparse.Features) + len(out.Weighted.Features)))
		for i := range makers {
			s.Slots += uint64(out.Groups[i].Slots * len(s.Groups[i]))
		}
		err := each(out, rows)
		scan = time.Now()
		return err
	})
	for i := range makers {
		s.HashSeconds += makers[i].hashing.Seconds()
		s.CopySeconds += makers[i].copying.Seconds()
	}
	return err
}

// without returns j without the lists of features that are in groups: j itself, or out, whose memory is used again.
func without(out, j *reader.Jagged, rows int, grouped map[int32]bool) *reader.Jagged {
	*out = reader.Jagged{
		Features: out.Features[:0], Lengths: out.Lengths[:0], Offsets: append(out.Offsets[:0], 0),
		Values: out.Values[:0], Weights: out.Weights[:0], Present: out.Present[:0],
	}
	at := int32(0)
	for k, f := range j.Features {
		if grouped[f] {
			continue
		}
		out.Features = append(out.Features, f)
		lengths := j.Lengths[k*rows : (k+1)*rows]
		out.Lengths = append(out.Lengths, lengths...)
		for _, n := range lengths {
			at += n
			out.Offsets = append(out.Offsets, at)
		}
		from, to := j.Offsets[k*rows], j.Offsets[(k+1)*rows]
		out.Values = append(out.Values, j.Values[from:to]...)
		if j.Weights != nil {
			out.Weights = append(out.Weights, j.Weights[from:to]...)
		}
		out.Present = append(out.Present, j.PresentOf(k)...)
	}
	if len(out.Features) == len(j.Features) {
		return j
	}
	return out
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

// make fills g from a batch of plain lists.
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
	hashed := time.Now()
	x.hashing += hashed.Sub(start)
	g.Inverse, g.Slots = x.inverse, len(x.first)
	x.copy(&g.Sparse, &t.Sparse, sparse, rows)
	x.copy(&g.Weighted, &t.Weighted, weighted, rows)
	x.copying += time.Since(hashed)
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

// copy makes out the lists of the slots' first rows.
func (x *hashGroup) copy(out, j *reader.Jagged, places []int, rows int) {
	slots := len(x.first)
	out.Features = out.Features[:0]
	out.Lengths, out.Offsets = sized(out.Lengths, len(places)*slots), sized(out.Offsets, len(places)*slots+1)
	words := vector.BitmapWords(slots)
	out.Present = sized(out.Present, len(places)*words)
	clear(out.Present)
	n := int32(0)
	out.Offsets[0] = 0
	for i, k := range places {
		out.Features = append(out.Features, j.Features[k])
		for s, r := range x.first {
			length := j.Lengths[k*rows+int(r)]
			out.Lengths[i*slots+s] = length
			n += length
			out.Offsets[i*slots+s+1] = n
		}
	}
	out.Values = sized(out.Values, int(n))
	if j.Weights != nil {
		out.Weights = sized(out.Weights, int(n))
	}
	for i, k := range places {
		present, to := j.PresentOf(k), vector.Bitmap(out.Present[i*words:(i+1)*words])
		for s, r := range x.first {
			from, end := j.Offsets[k*rows+int(r)], j.Offsets[k*rows+int(r)+1]
			at := out.Offsets[i*slots+s]
			copy(out.Values[at:], j.Values[from:end])
			if j.Weights != nil {
				copy(out.Weights[at:], j.Weights[from:end])
			}
			if present != nil && present.Get(int(r)) {
				to.Set(s)
			}
		}
	}
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
