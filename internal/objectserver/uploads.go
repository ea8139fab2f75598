package objectserver

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Uploads returns how many multipart uploads of a bucket were begun and have not ended.
func (s *S3) Uploads(t testing.TB, bucket string) int {
	t.Helper()
	c := s3.New(s3.Options{
		BaseEndpoint: &s.Endpoint, UsePathStyle: true, Region: s.Region,
		Credentials: credentials.NewStaticCredentialsProvider(s.AccessKey, s.SecretKey, ""),
	})
	out, err := c.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: aws.String(bucket)})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Uploads)
}
