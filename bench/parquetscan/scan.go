package parquetscan

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"golang.org/x/sync/errgroup"
)

// A Column is a feature to read.
type Column struct {
	Name string
	Type vector.Type
}

// Options say how to read. The zero value works.
type Options struct {
	BatchSize int // default 4,096
	Threads   int // that decode columns; default 1
	// NoMemoryMap reads column chunks into memory of their own instead of mapping the files.
	NoMemoryMap bool
}

// A Scanner reads files of one schema in turn. Not safe for concurrent use.
type Scanner struct {
	opts    Options
	files   []*file.Reader
	left    int64
	tensors reader.Tensors
	// In the order of the features of each tensor.
	dense      []dense
	embeddings []embedding
	sparse     []list
	weighted   []list
}

// Open opens Parquet files and finds the columns in them.
func Open(paths []string, columns []Column, opts Options) (*Scanner, error) {
	if opts.BatchSize == 0 {
		opts.BatchSize = 4096
	}
	if opts.BatchSize < 0 || len(paths) == 0 {
		return nil, fmt.Errorf("batch size %d of %d files: want at least 1 of each", opts.BatchSize, len(paths))
	}
	opts.Threads = max(opts.Threads, 1)
	s := &Scanner{opts: opts}
	if err := s.open(paths, columns); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Scanner) open(paths []string, columns []Column) error {
	leaves := make([]map[string][]int, len(paths))
	for i, p := range paths {
		f, err := file.OpenParquetFile(p, !s.opts.NoMemoryMap)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		s.files = append(s.files, f)
		s.left += f.NumRows()
		leaves[i] = leavesByColumn(f)
	}
	for i, c := range columns {
		if err := s.add(int32(i), c, leaves); err != nil {
			return fmt.Errorf("%s: %w", paths[0], err)
		}
	}
	return nil
}

func matrixOf(place int32, width int) reader.Matrix {
	return reader.Matrix{Features: []int32{place}, Width: width}
}

// Next returns the next batch and its rows, borrowed until the next call, or io.EOF after the last.
func (s *Scanner) Next(ctx context.Context) (t *reader.Tensors, rows int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if s.left == 0 {
		return nil, 0, io.EOF
	}
	rows = int(min(s.left, int64(s.opts.BatchSize)))
	s.prepare(rows)
	if s.opts.Threads == 1 {
		err = s.sequential(rows)
	} else {
		err = s.parallel(rows)
	}
	if err != nil {
		return nil, 0, err
	}
	s.left -= int64(rows)
	return &s.tensors, rows, nil
}

// prepare sizes what does not depend on the lengths of lists, and clears what is filled bit by bit.
func (s *Scanner) prepare(rows int) {
	words := vector.BitmapWords(rows)
	matrix := func(m *reader.Matrix) {
		m.Values, m.Present = sized(m.Values, rows*m.Width), sized(m.Present, words*len(m.Features))
		clear(m.Values)
		clear(m.Present)
	}
	matrix(&s.tensors.Dense)
	for i := range s.tensors.Embeddings {
		matrix(&s.tensors.Embeddings[i])
	}
	for _, j := range []*reader.Jagged{&s.tensors.Sparse, &s.tensors.Weighted} {
		n := rows * len(j.Features)
		j.Lengths, j.Offsets, j.Present = sized(j.Lengths, n), sized(j.Offsets, n+1),
			sized(j.Present, words*len(j.Features))
		clear(j.Present)
		j.Values, j.Weights = j.Values[:0], j.Weights[:0]
	}
}

func sized[T any](s []T, n int) []T { return grown(s[:0], n) }

func (s *Scanner) fillDense(k, rows int) error {
	m := &s.tensors.Dense
	return s.dense[k].fill(m.Values, m.Width, k, rows, m.PresentOf(k))
}

func (s *Scanner) fillEmbedding(k, rows int) error {
	m := &s.tensors.Embeddings[k]
	return s.embeddings[k].fill(m.Values, m.Width, rows, m.PresentOf(0))
}

// sequential decodes lists straight into the tensors, one column after another.
func (s *Scanner) sequential(rows int) (err error) {
	for k := range s.dense {
		if err := s.fillDense(k, rows); err != nil {
			return err
		}
	}
	for k := range s.embeddings {
		if err := s.fillEmbedding(k, rows); err != nil {
			return err
		}
	}
	jagged := func(j *reader.Jagged, lists []list) error {
		for k := range lists {
			j.Values, j.Weights, err = lists[k].read(j.Values, j.Weights, j.Lengths[k*rows:(k+1)*rows], j.PresentOf(k))
			if err != nil {
				return err
			}
		}
		return accumulate(j)
	}
	return errors.Join(jagged(&s.tensors.Sparse, s.sparse), jagged(&s.tensors.Weighted, s.weighted))
}

// parallel decodes columns side by side and then puts the lists together.
func (s *Scanner) parallel(rows int) error {
	var g errgroup.Group
	g.SetLimit(s.opts.Threads)
	decode := func(j *reader.Jagged, lists []list) {
		for k := range lists {
			g.Go(func() (err error) {
				c := &lists[k]
				c.ownIDs, c.ownScores, err = c.read(c.ownIDs[:0], c.ownScores[:0], j.Lengths[k*rows:(k+1)*rows],
					j.PresentOf(k))
				return err
			})
		}
	}
	decode(&s.tensors.Sparse, s.sparse)
	decode(&s.tensors.Weighted, s.weighted)
	for k := range s.embeddings {
		g.Go(func() error { return s.fillEmbedding(k, rows) })
	}
	// Dense columns are small: one task for them all.
	g.Go(func() error {
		for k := range s.dense {
			if err := s.fillDense(k, rows); err != nil {
				return err
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return err
	}
	assemble := func(j *reader.Jagged, lists []list) {
		n := 0
		for k := range lists {
			n += len(lists[k].ownIDs)
		}
		j.Values = sized(j.Values, n)
		if len(lists) > 0 && lists[0].scores != nil {
			j.Weights = sized(j.Weights, n)
		}
		at := 0
		for k := range lists {
			c, from := &lists[k], at
			at += len(c.ownIDs)
			g.Go(func() error {
				copy(j.Values[from:], c.ownIDs)
				if c.scores != nil {
					copy(j.Weights[from:], c.ownScores)
				}
				return nil
			})
		}
	}
	assemble(&s.tensors.Sparse, s.sparse)
	assemble(&s.tensors.Weighted, s.weighted)
	if err := g.Wait(); err != nil {
		return err
	}
	return errors.Join(accumulate(&s.tensors.Sparse), accumulate(&s.tensors.Weighted))
}

// accumulate makes the offsets of the lengths.
func accumulate(j *reader.Jagged) error {
	if len(j.Values) > 1<<31-1 {
		return fmt.Errorf("a batch of %d ids: want a smaller batch size", len(j.Values))
	}
	at := int32(0)
	j.Offsets[0] = 0
	for i, n := range j.Lengths {
		at += n
		j.Offsets[i+1] = at
	}
	return nil
}

// Close closes the files.
func (s *Scanner) Close() error {
	var err error
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	s.files = nil
	return err
}
