package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/s3"
)

// Credentials that change while a store is used are found where they come from: those of a file, of a process, of a
// container, and of the program itself. What is signed with older ones is refused.
func TestRotation(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	const every, rotations = time.Second, 4
	server := objectserver.StartRotating(t, every, bucket)
	ctx, dir := t.Context(), t.TempDir()
	config, shared := filepath.Join(dir, "config"), filepath.Join(dir, "credentials")
	must(t, os.WriteFile(config, []byte("[profile process]\ncredential_process = curl -s "+server.URL+"\n"), 0o600))
	write := func(c objectserver.Credential) {
		text := fmt.Sprintf("[file]\naws_access_key_id = %s\naws_secret_access_key = %s\n", c.AccessKeyID,
			c.SecretAccessKey)
		must(t, os.WriteFile(shared+".new", []byte(text), 0o600))
		must(t, os.Rename(shared+".new", shared))
	}
	write(server.Newest())
	t.Setenv("AWS_CONFIG_FILE", config)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", shared)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.URL)
	var asked atomic.Int64
	go func() {
		for x := s3.ExchangeOf("program"); x.Wanted(ctx) == nil; asked.Add(1) {
			c := server.Newest()
			x.Give(c.AccessKeyID, c.SecretAccessKey, "", c.Expiration, nil)
		}
	}()
	go func() {
		for ctx.Err() == nil {
			if c := server.Newest(); !strings.Contains(string(read(shared)), c.AccessKeyID) {
				write(c)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	data := large(1 << 20)
	var wg sync.WaitGroup
	for name, option := range map[string][2]string{
		"file": {"aws_profile", "file"}, "process": {"aws_profile", "process"},
		"container": {"aws_region", "us-east-1"}, "program": {"credential_provider", "program"},
	} {
		s, err := object.OpenWith("s3://"+bucket+"/"+name, map[string]string{
			"aws_endpoint": server.Endpoint, option[0]: option[1],
		})
		must(t, err)
		wg.Go(func() {
			last, n := server.Rotations()+rotations, 0
			for ; server.Rotations() < last; n++ {
				if err := use(ctx, s, fmt.Sprintf("%d", n), data); err != nil {
					t.Errorf("%s, after %d rotations: %v", name, server.Rotations(), err)
					return
				}
			}
			t.Logf("%s: %d times", name, n)
		})
	}
	wg.Wait()
	if server.Refused() == 0 || asked.Load() < rotations {
		t.Errorf("%d requests were refused, and the program was asked %d times", server.Refused(), asked.Load())
	}
}

// use makes an object, by one request or in parts, describes it and reads it.
func use(ctx context.Context, s object.Store, name string, data []byte) error {
	if err := s.PutIfAbsent(ctx, name, data); err != nil {
		return err
	}
	w, err := s.(interface {
		CreateInParts(ctx context.Context, name string) (object.Writer, error)
	}).CreateInParts(ctx, name+"-parts")
	if err == nil {
		_, err = w.Write(data[:100])
	}
	if err == nil {
		err = w.Commit(ctx)
	}
	if err != nil {
		return err
	}
	info, err := s.Stat(ctx, name)
	if err != nil {
		return err
	}
	got := make([]byte, info.Size)
	if err := s.ReadAt(ctx, name, got, 0); err != nil {
		return err
	}
	if !bytes.Equal(got, data) {
		return errors.New("other bytes")
	}
	for _, err := range s.List(ctx, name, "") {
		if err != nil {
			return err
		}
	}
	return nil
}

func read(path string) []byte {
	b, _ := os.ReadFile(path) // what cannot be read is looked at again
	return b
}

// A program that has no credentials says why, and shows nothing; one that gives none is an error.
func TestNoCredentials(t *testing.T) {
	go func() {
		x := s3.ExchangeOf("none")
		for i := 0; x.Wanted(t.Context()) == nil; i++ {
			if i == 0 {
				x.Give("", "", "", time.Time{}, errors.New("the vault is closed"))
			} else {
				x.Give("", "hush", "", time.Time{}, nil)
			}
		}
	}()
	s, err := object.OpenWith("s3://b", map[string]string{"region": "us-east-1", "credential_provider": "none"})
	must(t, err)
	for _, want := range []string{"the vault is closed", "no access key"} {
		_, err = s.Stat(t.Context(), "a")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Where the environment has no credentials, the error says which variables to set.
func TestNoCredentialsAnywhere(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	s, err := object.OpenWith("s3://b", map[string]string{"region": "us-east-1"})
	must(t, err)
	_, err = s.Stat(t.Context(), "a")
	if !errors.Is(err, object.ErrDenied) || !strings.Contains(err.Error(), "set AWS_ACCESS_KEY_ID") ||
		strings.Contains(err.Error(), "IMDS") {
		t.Error(err)
	}
	// A machine of EC2 says why it has no role: it may have one.
	metadata := httptest.NewServer(http.NotFoundHandler())
	defer metadata.Close()
	t.Setenv("AWS_EC2_METADATA_DISABLED", "")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.URL)
	s, err = object.OpenWith("s3://b", map[string]string{"region": "us-east-1"})
	must(t, err)
	_, err = s.Stat(t.Context(), "a")
	if !errors.Is(err, object.ErrDenied) || !strings.Contains(err.Error(), "set AWS_ACCESS_KEY_ID") ||
		!strings.Contains(err.Error(), "; this machine gives no role: ") || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
}

// Credentials that stay as they are, and are refused, are an error at once.
func TestRefusedCredentials(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	t.Setenv("AWS_ACCESS_KEY_ID", server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	s, err := object.OpenWith("s3://"+bucket, map[string]string{"endpoint": server.Endpoint})
	must(t, err)
	begin := time.Now()
	err = s.PutIfAbsent(t.Context(), "a", nil)
	if !errors.Is(err, object.ErrDenied) || time.Since(begin) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}
}
