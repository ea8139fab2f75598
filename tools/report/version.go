package report

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/dsistore/dsistore/storage"
)

// Version returns a text that is another one when a table has a new snapshot or usage record. It costs two listings
// and two reads.
func Version(ctx context.Context, store *storage.Store, table string) (string, error) {
	t, snap, err := store.Newest(ctx, table)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, snap.Info().Number)
	for info, err := range store.Blobs().List(ctx, t.UsagePrefix(), "") {
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, info.Name, info.Size)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}
