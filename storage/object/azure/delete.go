package azure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/remote"
)

// Delete removes an object, if there is one.
func (s *Store) Delete(ctx context.Context, name string) error {
	b, err := s.blob(name)
	if err != nil {
		return err
	}
	_, err = b.Delete(ctx, withSnapshots())
	if _, code := answer(err); code == bloberror.BlobNotFound {
		return nil
	}
	return s.wrap(ctx, name, err)
}

// withSnapshots deletes what somebody has kept of an object, too: it could not be deleted otherwise.
func withSnapshots() *blob.DeleteOptions {
	return &blob.DeleteOptions{DeleteSnapshots: ptr(blob.DeleteSnapshotsOptionTypeInclude)}
}

// batch is how many objects a request may delete.
const batch = 256

// DeleteAll removes 256 objects a request, and several requests at a time. What a request has not done is asked for one
// by one.
func (s *Store) DeleteAll(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := validateName(name); err != nil {
			return err
		}
	}
	n := (len(names) + batch - 1) / batch
	return object.Parallel(ctx, object.RequestsAtOnce, n, func(ctx context.Context, i int) error {
		left, err := s.deleteBatch(ctx, names[i*batch:min((i+1)*batch, len(names))])
		if err != nil {
			return err
		}
		denied := make([]error, len(left))
		err = object.Parallel(ctx, object.RequestsAtOnce, len(left), func(ctx context.Context, i int) error {
			err := s.Delete(ctx, left[i])
			if errors.Is(err, object.ErrDenied) {
				denied[i], err = err, nil
			}
			return err
		})
		var refused remote.Refusals
		for i, err := range denied {
			if err != nil {
				refused.Add(left[i], err)
			}
		}
		return cmp.Or(refused.Err(), err)
	})
}

// DeletesAtOnce says how many objects a request of DeleteAll deletes: object.Counted counts requests.
func (s *Store) DeletesAtOnce() int { return batch }

// deleteBatch deletes objects by one request, and returns those that are to be deleted by themselves.
func (s *Store) deleteBatch(ctx context.Context, names []string) (left []string, _ error) {
	b, err := s.client.NewBatchBuilder()
	if err != nil {
		return nil, s.wrap(ctx, names[0], err)
	}
	for _, name := range names {
		err := b.Delete(s.at.Prefix+name, &container.BatchDeleteOptions{DeleteOptions: *withSnapshots()})
		if err != nil {
			return nil, s.wrap(ctx, name, err)
		}
	}
	out, err := s.client.SubmitBatch(ctx, b, nil)
	if status, _ := answer(err); status == http.StatusForbidden || status == http.StatusNotImplemented {
		return names, nil // a signature for batches is another one than that for deletions
	}
	if err != nil {
		return nil, s.wrap(ctx, names[0], err)
	}
	done := make([]bool, len(names))
	for _, r := range out.Responses {
		if r.ContentID == nil || *r.ContentID < 0 || *r.ContentID >= len(names) {
			return nil, fmt.Errorf("object %s: the service answers about an object that was not asked for", names[0])
		}
		_, code := answer(r.Error)
		done[*r.ContentID] = r.Error == nil || code == bloberror.BlobNotFound
	}
	for i, name := range names {
		if !done[i] {
			left = append(left, name)
		}
	}
	return left, nil
}
