package main

import (
	"context"
	"time"

	"github.com/dsistore/dsistore/storage"
)

type indexCmd struct {
	Rebuild indexRebuildCmd `cmd:"" help:"Make the index database anew from the objects."`
}

type indexRebuildCmd struct{ storeArg }

func (c *indexRebuildCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	start := time.Now()
	if err := storage.RebuildIndex(ctx, store); err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	if a.json {
		return a.printJSON(struct {
			Store   string  `json:"store"`
			Seconds float64 `json:"seconds"`
		}{store.Blobs().URI(), seconds})
	}
	a.printf("index of %s rebuilt in %.1f s\n", store.Blobs().URI(), seconds)
	return nil
}
