package objectserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// An S3 is a server that speaks S3, on a port of the loopback address.
type S3 struct {
	Endpoint             string // http://127.0.0.1:port
	AccessKey, SecretKey string
	Region               string
}

// versitygw is the package of a gateway from S3 to files, which keeps the conditions of creations, of parts too.
const versitygw = "github.com/versity/versitygw/cmd/versitygw"

// StartS3 starts a server with empty buckets of the given names. It ends with the test, which is skipped where the
// server cannot be had.
func StartS3(t testing.TB, buckets ...string) *S3 {
	t.Helper()
	path, err := build(pinned, versitygw)
	if err != nil {
		skip(t, "S3", err)
	}
	s, stop, err := runS3(t.Context(), path, t.TempDir(), buckets)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// RunS3 is StartS3 outside of tests: with files in dir, until stop is called.
func RunS3(ctx context.Context, dir string, buckets ...string) (s *S3, stop func(), err error) {
	path, err := build(pinned, versitygw)
	if err != nil {
		return nil, nil, err
	}
	return runS3(ctx, path, dir, buckets)
}

func runS3(ctx context.Context, path, dir string, buckets []string, with ...string) (*S3, func(), error) {
	files, versions := filepath.Join(dir, "files"), filepath.Join(dir, "versions")
	for _, d := range append(buckets, "") {
		if err := errors.Join(os.MkdirAll(filepath.Join(files, d), 0o755), os.MkdirAll(versions, 0o755)); err != nil {
			return nil, nil, err
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	s := &S3{
		Endpoint: "http://127.0.0.1:" + port, AccessKey: "dsistore", SecretKey: "not a secret", Region: "us-east-1",
	}
	args := append([]string{
		"--port", "127.0.0.1:" + port, "--access", s.AccessKey, "--secret", s.SecretKey, "--region", s.Region,
		"--quiet",
	}, with...)
	stop, err := serve(ctx, s.Endpoint, path, append(args, "posix", "--versioning-dir", versions, files)...)
	if err != nil {
		return nil, nil, err
	}
	return s, stop, nil
}

// Options are those by which package s3 reaches the server.
func (s *S3) Options() map[string]string {
	return map[string]string{
		"aws_endpoint": s.Endpoint, "aws_access_key_id": s.AccessKey, "aws_secret_access_key": s.SecretKey,
		"aws_region": s.Region,
	}
}

// Environment returns the variables of an environment that do the same.
func (s *S3) Environment() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": s.Endpoint, "AWS_ACCESS_KEY_ID": s.AccessKey, "AWS_SECRET_ACCESS_KEY": s.SecretKey,
		"AWS_REGION": s.Region, "AWS_EC2_METADATA_DISABLED": "true",
	}
}
