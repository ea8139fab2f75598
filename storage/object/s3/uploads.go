package s3

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/dsistore/dsistore/storage/object"
)

var _ object.Unfinished = (*Store)(nil)

// uploadMark is between an object's name and the id of its upload in the name of what Temporary lists. No object's name
// has a question mark.
const uploadMark = "?uploadId="

// Temporary lists the uploads that have not ended, with the time of their beginning. How many bytes they have is not
// asked.
func (s *Store) Temporary(ctx context.Context) ([]object.Info, error) {
	var out []object.Info
	ask := &awss3.ListMultipartUploadsInput{Bucket: &s.at.Bucket, Prefix: &s.at.Prefix, EncodingType: escaped}
	for {
		page, err := s.client.ListMultipartUploads(ctx, ask)
		if err != nil {
			return nil, s.wrap(ctx, "uploads", err)
		}
		keys := []*string{page.NextKeyMarker}
		for _, u := range page.Uploads {
			keys = append(keys, u.Key)
		}
		if err := unescape(page.EncodingType, keys); err != nil {
			return nil, err
		}
		for _, u := range page.Uploads {
			name := strings.TrimPrefix(aws.ToString(u.Key), s.at.Prefix)
			if object.ValidateName(name) != nil {
				continue
			}
			out = append(out, object.Info{
				Name: name + uploadMark + aws.ToString(u.UploadId), ModTime: aws.ToTime(u.Initiated).UnixNano(),
			})
		}
		if !aws.ToBool(page.IsTruncated) {
			return out, nil
		}
		if aws.ToString(page.NextKeyMarker) == "" {
			return nil, noNextPage("uploads")
		}
		ask.KeyMarker, ask.UploadIdMarker = page.NextKeyMarker, page.NextUploadIdMarker
	}
}

// RemoveTemporary aborts an upload.
func (s *Store) RemoveTemporary(ctx context.Context, name string) error {
	of, id, ok := strings.Cut(name, uploadMark)
	key, err := s.key(of)
	if err != nil || !ok {
		return fmt.Errorf("%q is no upload", name)
	}
	_, err = s.client.AbortMultipartUpload(ctx, &awss3.AbortMultipartUploadInput{
		Bucket: &s.at.Bucket, Key: key, UploadId: &id,
	})
	if status, _ := answer(err); status == http.StatusNotFound { // it has ended meanwhile
		return nil
	}
	return s.wrap(ctx, name, err)
}
