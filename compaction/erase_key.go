package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// ErrNoKey is returned when no feature is named that has the keys, and the table does not have one user key.
var ErrNoKey = errors.New("no feature has the keys")

// A noKeyError says why. It matches ErrNoKey.
type noKeyError string

func (e noKeyError) Error() string { return string(e) }

func (noKeyError) Is(target error) bool { return target == ErrNoKey }

// KeyFeature returns the feature that has keys to erase: that of the name, with an empty name the user key of the
// table. A table without one, or with several, is ErrNoKey: ids of users that were searched for among those of sessions
// would be said to be erased.
func KeyFeature(ctx context.Context, snap *storage.Snapshot, name string) (catalog.Feature, error) {
	if name == "" {
		users, err := snap.KeysOf(ctx, catalog.RoleUserKey)
		if err != nil {
			return catalog.Feature{}, err
		}
		switch table := snap.Table().Name(); len(users) {
		case 0:
			return catalog.Feature{}, noKeyError(fmt.Sprintf("keys: table %s has no user key: say with --key which "+
				"feature has them; in a new table, the column with role user_key in the mapping file is the default",
				table))
		case 1:
			name = users[0]
		default:
			return catalog.Feature{}, noKeyError(fmt.Sprintf("keys: table %s has %d user keys (%s): say with --key "+
				"which of them is meant", table, len(users), strings.Join(users, ", ")))
		}
	}
	found, err := snap.Lookup(ctx, name)
	if err != nil {
		return catalog.Feature{}, err
	}
	return found[0], nil
}

// searchKey returns the feature whose values are searched for after rows were erased by a filter: Erasure.Key, else the
// user key of the table, else the request key, else the session key, and nil if the table has none of them.
func (e *eraser) searchKey(ctx context.Context) (*catalog.Feature, error) {
	if e.what.Key != "" {
		f, err := KeyFeature(ctx, e.snap, e.what.Key)
		return &f, err
	}
	keys, err := e.snap.KeyFeatures(ctx)
	if err != nil {
		return nil, err
	}
	for _, role := range []catalog.Role{catalog.RoleUserKey, catalog.RoleRequestKey, catalog.RoleSessionKey} {
		if i := slices.IndexFunc(keys, func(f catalog.Feature) bool { return f.Role == role }); i >= 0 {
			return &keys[i], nil
		}
	}
	return nil, nil
}

// plainKey returns an error if an overlay replaces the values of the key, which then are in two places.
func (e *eraser) plainKey(ctx context.Context, key catalog.Feature) error {
	overlays, err := e.snap.Overlays(ctx)
	if err != nil {
		return err
	}
	for _, o := range overlays {
		if hasFeature(o, key.ID) {
			return fmt.Errorf("overlay %s replaces the key %s: drop it, or merge it and compact the table, first",
				o.Name, key.Name)
		}
	}
	return nil
}
