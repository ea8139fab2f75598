package lsm

import (
	"cmp"
	"context"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/storage/sst"
	"github.com/dsistore/dsistore/storage/wire"
)

// checkBytes is how much of a table that is not in memory is read at once to hash it.
const checkBytes = 4 << 20

// OpenRunChecked is OpenRun for who reads all of the run: all of its table must be right, however large it is.
func (s *Store) OpenRunChecked(ctx context.Context, kind Kind, ref Run) (*sst.Reader, error) {
	r, err := s.OpenRun(ctx, kind, ref)
	if err == nil {
		err = s.check(ctx, kind, ref, r)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Check returns an error unless all tables of the runs are right. Who goes through a whole tree, to delete what it does
// not name or to write it anew, calls it before.
func (s *Store) Check(ctx context.Context, kind Kind, runs ...Run) error {
	for _, ref := range runs {
		r, err := s.run(ctx, kind, ref)
		if err == nil {
			err = s.check(ctx, kind, ref, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check holds all bytes of an open run to its hash.
func (s *Store) check(ctx context.Context, kind Kind, ref Run, r *sst.Reader) error {
	name, hash := kind.ObjectName(ref.ID), xxhash.New()
	if b := r.Whole(); b != nil {
		_, _ = hash.Write(b)
	} else {
		buf := make([]byte, min(ref.Size, checkBytes))
		for at := uint64(0); at < ref.Size; at += uint64(len(buf)) {
			buf = buf[:min(ref.Size-at, checkBytes)]
			if err := s.Blobs.ReadAt(ctx, name, buf, int64(at)); err != nil {
				return wire.Missing(name, err)
			}
			_, _ = hash.Write(buf)
		}
	}
	block, other := ref.hold(ctx, kind, r, hash.Sum64())
	return cmp.Or(block, other)
}

// hold compares the hash of a run's table. If it differs, block is the error of the first damaged block, and without
// one, other says that the table is another run's.
func (r Run) hold(ctx context.Context, kind Kind, table *sst.Reader, hash uint64) (block, other error) {
	if hash == r.Hash {
		return nil, nil
	}
	it := table.Iter(nil)
	for ok := it.SeekGE(ctx, nil); ok; ok = it.Next(ctx) {
	}
	return it.Err(), wire.Corrupt(kind.ObjectName(r.ID),
		fmt.Sprintf("hash %016x: the snapshot says %016x", hash, r.Hash))
}
