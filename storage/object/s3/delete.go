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
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
	"github.com/dsistore/dsistore/storage/object/remote"
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

// batch is how many objects a request may delete.
const batch = 1000

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

// DeletesAtOnce says how many objects a request of DeleteAll deletes: object.Counted counts requests.
func (s *Store) DeletesAtOnce() int { return batch }

// deleteIDs deletes objects, or versions of them.
func (s *Store) deleteIDs(ctx context.Context, ids []types.ObjectIdentifier) error {
	n := (len(ids) + batch - 1) / batch
	return object.Parallel(ctx, object.RequestsAtOnce, n, func(ctx context.Context, i int) error {
		left := ids[i*batch : min((i+1)*batch, len(ids))]
		retry, refused := endpoint.NewRetry(), &remote.Refusals{}
		for {
			out, err := s.client.DeleteObjects(ctx, &awss3.DeleteObjectsInput{
				Bucket: &s.at.Bucket, Delete: &types.Delete{Objects: left, Quiet: aws.Bool(true)},
			}, withMD5)
			if err != nil {
				return s.wrap(ctx, s.nameOf(left[0]), err)
			}
			var last types.Error
			if left, last, err = s.again(left, out.Errors, refused); err != nil {
				return err
			}
			if len(left) == 0 {
				return refused.Err()
			}
			if !retry.Wait(ctx, nil) {
				if ctx.Err() != nil {
					return s.wrap(ctx, s.nameOf(left[0]), ctx.Err())
				}
				refused.Add(s.nameOf(types.ObjectIdentifier{Key: last.Key}), s.refused(last))
				return refused.Err()
			}
		}
	})
}

// again returns those of the ids sent that are to be sent once more, by the errors of the answer, and adds the others
// to what is refused. An error may leave the version out: without it the request would be about another version, so
// that what is sent again is what was sent.
func (s *Store) again(sent []types.ObjectIdentifier, errs []types.Error, refused *remote.Refusals) (
	left []types.ObjectIdentifier, last types.Error, _ error) {
	taken := make([]bool, len(sent))
	for _, e := range errs {
		switch aws.ToString(e.Code) {
		case "NoSuchKey", "NoSuchVersion":
			continue
		case "InternalError", "SlowDown", "ServiceUnavailable", "OperationAborted":
		default:
			refused.Add(s.nameOf(types.ObjectIdentifier{Key: e.Key}), s.refused(e))
			continue
		}
		found := false
		for i, id := range sent {
			if *id.Key == aws.ToString(e.Key) && (e.VersionId == nil ||
				aws.ToString(id.VersionId) == *e.VersionId) && !taken[i] {
				taken[i], found = true, true
				left = append(left, id)
				if e.VersionId != nil {
					break
				}
			}
		}
		if last = e; !found && e.VersionId != nil {
			return nil, e, fmt.Errorf("%w: the service answers about a version that was not asked for", s.refused(e))
		}
	}
	return left, last, nil
}

// withMD5 adds the digest that services want which do not know AWS's newer checksums.
func withMD5(o *awss3.Options) {
	o.APIOptions = append(o.APIOptions, smithyhttp.AddContentChecksumMiddleware)
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

// KeepsVersions asks whether the bucket has, or had, versioning enabled, and then for one version, so that who may not
// list them is told before anything is done. A service that does not know the question keeps none.
func (s *Store) KeepsVersions(ctx context.Context) (bool, error) {
	out, err := s.client.GetBucketVersioning(ctx, &awss3.GetBucketVersioningInput{Bucket: &s.at.Bucket})
	if status, _ := answer(err); status == http.StatusNotImplemented || status == http.StatusMethodNotAllowed {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("whether bucket %s keeps versions (s3:GetBucketVersioning): %w", s.at.Bucket,
			s.wrap(ctx, s.at.Bucket, err))
	}
	if out.Status == "" {
		return false, nil
	}
	_, err = s.client.ListObjectVersions(ctx, &awss3.ListObjectVersionsInput{
		Bucket: &s.at.Bucket, Prefix: &s.at.Prefix, MaxKeys: aws.Int32(1), EncodingType: escaped,
	})
	if err != nil {
		return true, fmt.Errorf("versions that bucket %s keeps (s3:ListBucketVersions): %w", s.at.Bucket,
			s.wrap(ctx, s.at.Bucket, err))
	}
	return true, nil
}

// RemoveVersions deletes the versions that are not the latest, and then the marks of deletion. A mark goes after all
// versions of its key: else the one before it would be the object again. A mark whose id is null stays, and has no
// bytes: where versioning was suspended, an object that is made later has the same id.
func (s *Store) RemoveVersions(ctx context.Context, prefix string, match func(string) bool) (n, bytes int64, _ error) {
	var marks []types.ObjectIdentifier // of keys of which older versions may be on the next page
	ask := &awss3.ListObjectVersionsInput{
		Bucket: &s.at.Bucket, Prefix: aws.String(s.at.Prefix + prefix), EncodingType: escaped,
	}
	for {
		page, err := s.client.ListObjectVersions(ctx, ask)
		if err != nil {
			return n, bytes, fmt.Errorf("versions: %w", s.wrap(ctx, prefix, err))
		}
		keys := []*string{page.NextKeyMarker}
		for _, v := range page.Versions {
			keys = append(keys, v.Key)
		}
		for _, m := range page.DeleteMarkers {
			keys = append(keys, m.Key)
		}
		if err := unescape(page.EncodingType, keys); err != nil {
			return n, bytes, err
		}
		var old []types.ObjectIdentifier
		size := int64(0)
		for _, v := range page.Versions {
			id := types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId}
			if !aws.ToBool(v.IsLatest) && v.VersionId != nil && match(s.nameOf(id)) {
				old = append(old, id)
				size += aws.ToInt64(v.Size)
			}
		}
		for _, m := range page.DeleteMarkers {
			id := types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId}
			if v := aws.ToString(m.VersionId); v != "" && v != "null" && match(s.nameOf(id)) {
				marks = append(marks, id)
			}
		}
		if err := s.deleteIDs(ctx, old); err != nil {
			return n, bytes, err
		}
		n, bytes = n+int64(len(old)), bytes+size
		more, next := aws.ToBool(page.IsTruncated), aws.ToString(page.NextKeyMarker)
		if more && next == "" {
			return n, bytes, noNextPage("versions of " + prefix)
		}
		var past, open []types.ObjectIdentifier
		for _, m := range marks {
			if more && *m.Key >= next {
				open = append(open, m)
			} else {
				past = append(past, m)
			}
		}
		if err := s.deleteIDs(ctx, past); err != nil || !more {
			return n, bytes, err
		}
		marks = open
		ask.KeyMarker, ask.VersionIdMarker = page.NextKeyMarker, page.NextVersionIdMarker
	}
}
