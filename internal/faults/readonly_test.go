package faults

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
)

// TestReadOnlyRights reads with the right to list and to get, and no other: the leases and usage records that a reader
// would write are no part of its work.
func TestReadOnlyRights(t *testing.T) {
	t.Setenv("DSISTORE_USAGE", "on")
	s := startS3(t)
	k := &kills{service: s, dir: t.TempDir(), rows: map[string][]row{}}
	k.dump(t, "A", 0, 300, 30)
	uri := s.root + "/store"
	mustRun(t, k.args(firstIngest, uri)...)
	mustRun(t, "branch", "create", uri, "t", "b")
	var refused atomic.Int64
	s.proxy.Break(func(r *http.Request) objectserver.Fault {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return objectserver.Fault{}
		}
		refused.Add(1)
		return objectserver.Fault{Status: http.StatusForbidden, Code: "AccessDenied"}
	})
	for _, args := range [][]string{
		{"scan", uri, "t", "--features", "row"},
		{"scan", uri, "t@b", "--features", "row", "--job", "nightly"},
		{"count", uri, "t", "--where", "row < 10"},
		{"head", uri, "t"},
		{"export", uri, "t", "--to", t.TempDir() + "/rows.jsonl"},
		{"describe", uri, "t"},
		{"verify", uri, "--deep"},
	} {
		if code, _, says := run(t, append(args, "--endpoint-url", s.proxied)...); code != 0 || says != "" {
			t.Errorf("dsi %q: exit code %d: %s", args, code, says)
		}
	}
	if refused.Load() == 0 {
		t.Error("nobody tried to write: the test shows nothing")
	}
	if code, _, _ := run(t, "delete", uri, "t", "--where", "row = 1", "--endpoint-url", s.proxied); code != 1 {
		t.Errorf("a deletion without the right: exit code %d", code)
	}
}
