package objectserver

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// An Other is a server of S3 beside versitygw.
type Other struct {
	Name string
	keys [2]string // access key and secret
	// program returns the arguments that start it, the program first, with an empty directory for files.
	program func(port, dir string) ([]string, error)
}

// The others. Rclone is compiled by "make races", Moto and S3sFS are installed by "make refused"; then all tests use
// them.
var (
	// Rclone has the conditions of creations, and seldom breaks them.
	Rclone = Other{"rclone serve s3", [2]string{"dsistore", "secret"}, func(port, dir string) ([]string, error) {
		path, err := build("rclone", "github.com/dsistore/dsistore/internal/objectserver/rclone")
		return []string{path, "serve", "s3", "--config", "", "--auth-key", "dsistore,secret", "--addr",
			"127.0.0.1:" + port, dir}, err
	}}
	S3rver = Other{"s3rver", [2]string{"S3RVER", "S3RVER"}, func(port, dir string) ([]string, error) {
		path, err := npm("s3rver", "3.7.1", "s3rver")
		return []string{path, "--silent", "--directory", dir, "--address", "127.0.0.1", "--port", port}, err
	}}
	S3sFS = Other{"s3s-fs", [2]string{"dsistore", "secret"}, func(port, dir string) ([]string, error) {
		const version = "0.14.1"
		path, err := installed("s3s-fs-"+version, filepath.Join("bin", "s3s-fs"), false,
			func(fresh, cache string) *exec.Cmd {
				c := exec.Command("cargo", "install", "--locked", "--root", fresh, "--features", "binary", "--version",
					version, "s3s-fs")
				c.Env = append(os.Environ(), "CARGO_TARGET_DIR="+cache)
				return c
			})
		return []string{path, "--host", "127.0.0.1", "--port", port, "--access-key", "dsistore", "--secret-key",
			"secret", dir}, err
	}}
	Moto = Other{"moto", [2]string{"dsistore", "secret"}, func(port, _ string) ([]string, error) {
		const version = "5.2.5"
		path, err := installed("moto-"+version, "moto", false, func(fresh, _ string) *exec.Cmd {
			return exec.Command("python3", "-m", "pip", "install", "--no-cache-dir", "--target", fresh,
				"moto[s3]=="+version, "flask", "flask-cors")
		})
		return []string{"env", "PYTHONPATH=" + filepath.Dir(path), "python3", "-m", "moto.server", "-H", "127.0.0.1",
			"-p", port}, err
	}}
)

// StartOther starts another server with empty buckets of the given names. It ends with the test, which is skipped where
// the server cannot be had.
func StartOther(t testing.TB, o Other, buckets ...string) *S3 {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	args, err := o.program(port, t.TempDir())
	if err != nil {
		t.Skipf("no %s: %v", o.Name, err)
	}
	s := &S3{"http://127.0.0.1:" + port, o.keys[0], o.keys[1], "us-east-1"}
	stop, err := serve(t.Context(), s.Endpoint, args[0], args[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	for _, name := range buckets {
		if _, err := s.client().CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
