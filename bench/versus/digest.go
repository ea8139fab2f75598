package versus

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
)

// A Digest stands for the rows that an engine gives: equal ones mean equal rows, in whatever order.
type Digest struct {
	Rows        int64
	IDs         int64
	TensorBytes int64  // values, scores and lengths; presence is not counted
	Sum         uint64 // of the rows' hashes
}

// DigestOf reads an epoch and hashes it.
func DigestOf(ctx context.Context, s Engine) (Digest, error) {
	var d Digest
	err := s.Epoch(ctx, 1, d.Add)
	return d, err
}

// Add adds a batch of n rows. Lists that rows share count as if they were expanded.
func (d *Digest) Add(t *reader.Tensors, n int) error {
	rows := make([]uint64, n)
	d.matrix(&t.Dense, rows)
	for i := range t.Embeddings {
		d.matrix(&t.Embeddings[i], rows)
	}
	var expanded reader.Jagged
	for _, j := range []*reader.Jagged{&t.Sparse, &t.Weighted} {
		if j.Groups != nil || j.Starts != nil {
			if err := t.Expand(&expanded, j); err != nil {
				return err
			}
			j = &expanded
		}
		d.jagged(j, rows)
	}
	for _, h := range rows {
		d.Sum += spread(h)
	}
	d.Rows += int64(len(rows))
	return nil
}

// spread is a bijection in which every bit of x tells on half of the result's.
func spread(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

func chain(h, v uint64) uint64 { return bits.RotateLeft64(h*0x9e3779b97f4a7c15, 29) ^ spread(v+h) }

func present(b vector.Bitmap, row int) uint64 {
	if b == nil || b.Get(row) {
		return 1
	}
	return 0
}

func (d *Digest) matrix(m *reader.Matrix, rows []uint64) {
	d.TensorBytes += 4 * int64(len(m.Values))
	each := m.Width / max(len(m.Features), 1)
	for k, f := range m.Features {
		p := m.PresentOf(k)
		for row := range rows {
			h := chain(uint64(f)+1, present(p, row))
			for i := range each {
				h = chain(h, uint64(math.Float32bits(m.Values[row*m.Width+k*each+i])))
			}
			rows[row] += spread(h)
		}
	}
}

func (d *Digest) jagged(j *reader.Jagged, rows []uint64) {
	d.IDs += int64(len(j.Values))
	d.TensorBytes += 8*int64(len(j.Values)) + 4*int64(len(j.Weights)+len(j.Lengths))
	for k, f := range j.Features {
		p := j.PresentOf(k)
		for row := range rows {
			at := k*len(rows) + row
			h := chain(uint64(f)+1, present(p, row)<<32|uint64(j.Lengths[at]))
			for i := j.Offsets[at]; i < j.Offsets[at+1]; i++ {
				h = chain(h, uint64(j.Values[i]))
				if j.Weights != nil {
					h = chain(h, uint64(math.Float32bits(j.Weights[i])))
				}
			}
			rows[row] += spread(h)
		}
	}
}

// Equal returns an error when engines do not give the same rows, else their digest.
func Equal(ctx context.Context, engines ...Engine) (Digest, error) {
	var first Digest
	for i, s := range engines {
		d, err := DigestOf(ctx, s)
		if err != nil {
			return d, fmt.Errorf("%s: %w", s.Name(), err)
		}
		if i == 0 {
			first = d
		} else if d != first {
			return d, fmt.Errorf("%s and %s do not give the same rows: %+v and %+v", engines[0].Name(), s.Name(), first,
				d)
		}
	}
	return first, nil
}
