package azure

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/dsistore/dsistore/storage/object"
)

var _ object.Versioned = (*Store)(nil)

// kept is what a listing has beside the objects: versions, snapshots, and what soft delete keeps of all three.
var kept = container.ListBlobsInclude{Versions: true, Snapshots: true, Deleted: true}

// KeepsVersions says that the container may. Whether it does is a setting of the account, which a user of its data may
// not read. It asks whether listings may have what is kept.
func (s *Store) KeepsVersions(ctx context.Context) (bool, error) {
	ask := container.ListBlobsFlatOptions{Prefix: &s.at.Prefix, Include: kept, MaxResults: ptr[int32](1)}
	err := s.pages(ctx, ask, "versions", func(*container.BlobItem) (bool, error) { return false, nil })
	if err != nil {
		return false, fmt.Errorf("whether container %s keeps versions: %w", s.at.Container, err)
	}
	return true, nil
}

// An old is something that is kept of an object.
type old struct {
	name, version, snapshot string
	deleted                 bool // softly
	size                    int64
}

// RemoveVersions deletes versions and snapshots, and then for good what soft delete keeps of them, which an account may
// not allow. A deleted object without versions, and what the account does not allow to delete, are ErrDenied: soft
// delete keeps them until its time is over.
func (s *Store) RemoveVersions(ctx context.Context, prefix string, match func(string) bool) (n, bytes int64, _ error) {
	counted := map[string]bool{}
	// What is deleted first may be kept softly, and is listed again.
	for pass := 1; ; pass++ {
		all, err := s.old(ctx, prefix, match)
		if err != nil || len(all) == 0 {
			return n, bytes, err
		}
		if pass > 3 {
			return n, bytes, fmt.Errorf("object %s: %w: a version of it is there again after it was deleted",
				all[0].name, object.ErrDenied)
		}
		err = object.Parallel(ctx, object.RequestsAtOnce, len(all), func(ctx context.Context, i int) error {
			return s.removeOld(ctx, all[i])
		})
		if err != nil {
			return n, bytes, err
		}
		for _, o := range all {
			if key := o.name + "?" + o.version + "?" + o.snapshot; !counted[key] {
				counted[key] = true
				n, bytes = n+1, bytes+o.size
			}
		}
	}
}

// old lists what is kept of objects.
func (s *Store) old(ctx context.Context, prefix string, match func(string) bool) (all []old, _ error) {
	ask := container.ListBlobsFlatOptions{Prefix: ptr(s.at.Prefix + prefix), Include: kept}
	err := s.pages(ctx, ask, prefix, func(item *container.BlobItem) (bool, error) {
		o := old{name: strings.TrimPrefix(*item.Name, s.at.Prefix), deleted: item.Deleted != nil && *item.Deleted}
		if item.VersionID != nil {
			o.version = *item.VersionID
		}
		if item.Snapshot != nil {
			o.snapshot = *item.Snapshot
		}
		if item.Properties.ContentLength != nil {
			o.size = *item.Properties.ContentLength
		}
		current := item.IsCurrentVersion != nil && *item.IsCurrentVersion || o.version == "" && o.snapshot == ""
		if (o.deleted || !current) && match(o.name) && object.ValidateName(o.name) == nil {
			all = append(all, o)
		}
		return true, nil
	})
	return all, err
}

func (s *Store) removeOld(ctx context.Context, o old) error {
	b, err := s.blob(o.name)
	switch {
	case err != nil:
		return err
	case o.version != "":
		b, err = b.WithVersionID(o.version)
	case o.snapshot != "":
		b, err = b.WithSnapshot(o.snapshot)
	default:
		return fmt.Errorf("object %s: %w: it is deleted, and soft delete of the account keeps it until its time is "+
			"over", o.name, object.ErrDenied)
	}
	if err != nil {
		return s.wrap(ctx, o.name, err)
	}
	how := &blob.DeleteOptions{}
	if o.deleted {
		how.BlobDeleteType = ptr(blob.DeleteTypePermanent)
	}
	_, err = b.Delete(ctx, how)
	status, code := answer(err)
	if code == bloberror.BlobNotFound {
		return nil
	}
	if o.deleted && (status == http.StatusBadRequest || status == http.StatusConflict) {
		return fmt.Errorf("object %s: %w: soft delete of the account keeps a version of it, and may not be ended "+
			"before its time (permanent delete): %w", o.name, object.ErrDenied, short(err))
	}
	return s.wrap(ctx, o.name, err)
}
