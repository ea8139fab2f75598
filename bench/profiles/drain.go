package main

import (
	"context"
	"errors"
	"io"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
)

// drain reads a plan to its end with one worker.
func drain(ctx context.Context, snap *storage.Snapshot, plan *reader.Plan) error {
	sc, err := reader.Open(ctx, snap, plan, reader.Options{Workers: 1})
	if err != nil {
		return err
	}
	for {
		b, err := sc.Next(ctx)
		if errors.Is(err, io.EOF) {
			return sc.Close()
		}
		if err != nil {
			return errors.Join(err, sc.Close())
		}
		b.Release()
	}
}
