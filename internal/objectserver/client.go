package objectserver

import (
	"bytes"
	"io"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// client is a client of the server besides the one that is tested.
func (s *S3) client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &s.Endpoint, UsePathStyle: true, Region: s.Region,
		Credentials: credentials.NewStaticCredentialsProvider(s.AccessKey, s.SecretKey, ""),
	})
}

// Uploads returns how many multipart uploads of keys of a bucket with a prefix were begun and have not ended.
func (s *S3) Uploads(t testing.TB, bucket, prefix string) int {
	t.Helper()
	out, err := s.client().ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{
		Bucket: aws.String(bucket), Prefix: aws.String(prefix),
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Uploads)
}

// Put makes an object of any name.
func (s *S3) Put(t testing.TB, bucket, key string, data []byte) {
	t.Helper()
	_, err := s.client().PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: &bucket, Key: &key, Body: bytes.NewReader(data),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// KeepVersions enables versioning of a bucket.
func (s *S3) KeepVersions(t testing.TB, bucket string) {
	t.Helper()
	_, err := s.client().PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket: &bucket, VersioningConfiguration: &types.VersioningConfiguration{
			Status: types.BucketVersioningStatusEnabled,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A Version is one of a key of a bucket that keeps them.
type Version struct {
	Key, ID string
	Latest  bool
	Mark    bool // of a deletion: it has no bytes
}

// Versions lists all versions in a bucket.
func (s *S3) Versions(t testing.TB, bucket string) (all []Version) {
	t.Helper()
	pages := s3.NewListObjectVersionsPaginator(s.client(), &s3.ListObjectVersionsInput{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page.Versions {
			all = append(all, Version{*v.Key, *v.VersionId, aws.ToBool(v.IsLatest), false})
		}
		for _, m := range page.DeleteMarkers {
			all = append(all, Version{*m.Key, *m.VersionId, aws.ToBool(m.IsLatest), true})
		}
	}
	return all
}

// Bytes returns what a version holds.
func (s *S3) Bytes(t testing.TB, bucket string, v Version) []byte {
	t.Helper()
	out, err := s.client().GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &v.Key, VersionId: &v.ID})
	if err != nil {
		t.Fatal(v, err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatal(v, err)
	}
	return b
}
