package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/dsi"
	"github.com/dsistore/dsistore/tools/terminal"
)

// childEnv says what a process of the test binary is instead of the tests.
const childEnv = "DSISTORE_FAULTS_CHILD"

func TestMain(m *testing.M) {
	os.Setenv("DSISTORE_USAGE", "off") // objects are counted; records have tests of their own
	switch os.Getenv(childEnv) {
	case "dsi":
		terminal.Main(dsi.Run)
	case "writer":
		if err := writer(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const bucket = "tables"

// A service is a server with an empty bucket, and a proxy before it.
type service struct {
	root    string // the bucket's URI
	proxy   *objectserver.Proxy
	proxied string // the endpoint, by way of the proxy
	// uploads returns how many uploads in parts have not ended; nil: nobody can say.
	uploads func() int
}

var services = []struct {
	name  string
	start func(t *testing.T) *service
}{
	{"s3", startS3}, {"gs", startGCS}, {"az", startAzure},
}

func startS3(t *testing.T) *service {
	s := objectserver.StartS3(t, bucket)
	p := objectserver.StartProxy(t, s.Endpoint)
	setenv(t, s.Environment())
	return &service{"s3://" + bucket, p, p.URL, func() int { return s.Uploads(t, bucket, "") }}
}

func startGCS(t *testing.T) *service {
	s := objectserver.StartGCS(t, bucket)
	p := objectserver.StartProxy(t, s.Endpoint)
	setenv(t, s.Environment())
	return &service{"gs://" + bucket, p, p.URL, nil}
}

func startAzure(t *testing.T) *service {
	s := objectserver.StartAzure(t, bucket)
	account := "/" + s.Account
	p := objectserver.StartProxy(t, strings.TrimSuffix(s.Endpoint, account))
	setenv(t, s.Environment())
	return &service{"az://" + bucket, p, p.URL + account, func() int { return s.Uploads(t, bucket) }}
}

func setenv(t *testing.T, environment map[string]string) {
	for name, value := range environment {
		t.Setenv(name, value)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run runs dsi in this process.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = dsi.Run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// mustRun is run of what succeeds.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := run(t, args...)
	if code != 0 {
		t.Fatalf("dsi %s: exit code %d: %s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// runJSON is mustRun with --json.
func runJSON[T any](t *testing.T, args ...string) (out T) {
	t.Helper()
	must(t, json.Unmarshal([]byte(mustRun(t, append(args, "--json")...)), &out))
	return out
}

func open(t *testing.T, uri string) object.Store {
	t.Helper()
	s, err := object.OpenWith(uri, nil)
	must(t, err)
	return s
}

// objects lists a store.
func objects(t *testing.T, s object.Store) (names []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), "", "") {
		must(t, err)
		names = append(names, info.Name)
	}
	return names
}

// copyStore copies the objects of a store to another place.
func copyStore(t *testing.T, from, to object.Store) {
	t.Helper()
	names := objects(t, from)
	must(t, object.Parallel(t.Context(), 8, len(names), func(ctx context.Context, i int) error {
		data, _, err := object.ReadWhole(ctx, from, names[i], 64<<20)
		if err != nil {
			return err
		}
		return to.PutIfAbsent(ctx, names[i], data)
	}))
}
