package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/dsistore/dsistore/storage/object"
)

var _ object.Versioned = (*Store)(nil)

// Delete removes an object, if there is one.
func (s *Store) Delete(ctx context.Context, name string) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	_, err = s.client.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: &s.at.Bucket, Key: key})
	return s.wrap(ctx, name, err)
}

const (
	// batch is how many objects a request may delete.
	batch = 1000
	// batchAttempts is how often a request is sent that the service has done in part.
	batchAttempts = 5
)

// DeleteAll removes 1,000 objects a request, and several requests at a time.
func (s *Store) DeleteAll(ctx context.Context, names []string) error {
	ids := make([]types.ObjectIdentifier, len(names))
	for i, name := range names {
		key, err := s.key(name)
		if err != nil {
			return err
		}
		ids[i].Key = key
	}
	return s.deleteIDs(ctx, ids)
}

// deleteIDs deletes objects, or versions of them.
func (s *Store) deleteIDs(ctx context.Context, ids []types.ObjectIdentifier) error {
	n := (len(ids) + batch - 1) / batch
	return object.Parallel(ctx, object.RequestsAtOnce, n, func(ctx context.Context, i int) error {
		left := ids[i*batch : min((i+1)*batch, len(ids))]
		for attempt := 1; ; attempt++ {
			out, err := s.client.DeleteObjects(ctx, &awss3.DeleteObjectsInput{
				Bucket: &s.at.Bucket, Delete: &types.Delete{Objects: left, Quiet: aws.Bool(true)},
			})
			if err != nil {
				return s.wrap(ctx, s.nameOf(left[0]), err)
			}
			left = left[:0:0]
			var last types.Error
			for _, e := range out.Errors {
				switch aws.ToString(e.Code) {
				case "NoSuchKey", "NoSuchVersion":
					continue
				case "InternalError", "SlowDown", "ServiceUnavailable", "OperationAborted":
					left = append(left, types.ObjectIdentifier{Key: e.Key, VersionId: e.VersionId})
					last = e
				default:
					return s.refused(e)
				}
			}
			switch {
			case len(left) == 0:
				return nil
			case attempt == batchAttempts:
				return s.refused(last)
			}
			if err := pause(ctx, attempt); err != nil {
				return s.wrap(ctx, s.nameOf(left[0]), err)
			}
		}
	})
}

// refused returns the error of one object of a request about many.
func (s *Store) refused(e types.Error) error {
	name, code := s.nameOf(types.ObjectIdentifier{Key: e.Key}), aws.ToString(e.Code)
	err := errors.New(strings.TrimSuffix(code+": "+aws.ToString(e.Message), ": "))
	switch code {
	case "AccessDenied":
		return fmt.Errorf("object %s: %w: %w", name, object.ErrDenied, err)
	case "SlowDown", "ServiceUnavailable":
		return fmt.Errorf("object %s: %w: %w", name, object.ErrThrottled, err)
	}
	return fmt.Errorf("object %s: %w", name, err)
}

func (s *Store) nameOf(id types.ObjectIdentifier) string {
	return strings.TrimPrefix(aws.ToString(id.Key), s.at.Prefix)
}

// KeepsVersions asks whether the bucket has, or had, versioning enabled. A service that does not know the question
// keeps none.
func (s *Store) KeepsVersions(ctx context.Context) (bool, error) {
	out, err := s.client.GetBucketVersioning(ctx, &awss3.GetBucketVersioningInput{Bucket: &s.at.Bucket})
	if status, _ := answer(err); status == http.StatusNotImplemented || status == http.StatusMethodNotAllowed {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("whether bucket %s keeps versions (s3:GetBucketVersioning): %w", s.at.Bucket,
			s.wrap(ctx, s.at.Bucket, err))
	}
	return out.Status != "", nil
}

// RemoveVersions deletes the versions that are not the latest, and then the marks of deletion. A mark goes after all
// versions of its key: else the one before it would be the object again.
func (s *Store) RemoveVersions(ctx context.Context, prefix string, match func(string) bool) ([]object.Info, error) {
	var removed []object.Info
	var marks []types.ObjectIdentifier // of keys of which older versions may be on the next page
	ask := &awss3.ListObjectVersionsInput{Bucket: &s.at.Bucket, Prefix: aws.String(s.at.Prefix + prefix)}
	for {
		page, err := s.client.ListObjectVersions(ctx, ask)
		if err != nil {
			return removed, fmt.Errorf("versions: %w", s.wrap(ctx, prefix, err))
		}
		var old []types.ObjectIdentifier
		var infos []object.Info
		last := "" // the last key of the page
		for _, v := range page.Versions {
			id := types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId}
			last = max(last, *v.Key)
			if name := s.nameOf(id); !aws.ToBool(v.IsLatest) && match(name) {
				old = append(old, id)
				infos = append(infos, object.Info{
					Name: name, Size: aws.ToInt64(v.Size), ModTime: aws.ToTime(v.LastModified).UnixNano(),
					Version: aws.ToString(v.VersionId),
				})
			}
		}
		for _, m := range page.DeleteMarkers {
			id := types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId}
			last = max(last, *m.Key)
			if match(s.nameOf(id)) {
				marks = append(marks, id)
			}
		}
		if err := s.deleteIDs(ctx, old); err != nil {
			return removed, err
		}
		removed = append(removed, infos...)
		more := aws.ToBool(page.IsTruncated)
		var past, open []types.ObjectIdentifier
		for _, m := range marks {
			if more && *m.Key == last {
				open = append(open, m)
			} else {
				past = append(past, m)
			}
		}
		if err := s.deleteIDs(ctx, past); err != nil {
			return removed, err
		}
		if !more {
			return removed, nil
		}
		marks = open
		ask.KeyMarker, ask.VersionIdMarker = page.NextKeyMarker, page.NextVersionIdMarker
	}
}
