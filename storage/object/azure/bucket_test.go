package azure_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

// Objects of other programs are read by any key, in the version that was described. What marks a folder is none.
func TestBucket(t *testing.T) {
	server, ctx := start(t), t.Context()
	must(t, server.Create(ctx, "dumps"))
	keys := []string{
		"a b/_SUCCESS", "a b/ds=2026-11-01/100%.parquet", "a b/ds=2026-11-01/part 0%3A+?#&.parquet",
		"a b/ds=2026-11-01/x//y", "a b/ds=2026-11-01/é\"<.", "top",
	}
	for _, k := range keys {
		server.Put(t, "dumps", k, []byte("bytes of "+k))
	}
	server.Put(t, "dumps", "a b/ds=2026-11-01", nil, "hdi_isfolder", "true")
	b, err := object.OpenBucket("az", "dumps", server.Options())
	must(t, err)
	var got []string
	for info, err := range b.List(ctx, "a b/") {
		must(t, err)
		got = append(got, info.Name)
		stat, err := b.Stat(ctx, info.Name)
		must(t, err)
		if stat != info || info.Version == "" {
			t.Errorf("listed %+v, described %+v", info, stat)
		}
		p := make([]byte, info.Size-9)
		must(t, b.ReadAt(ctx, info, p, 9))
		if string(p) != info.Name {
			t.Errorf("%s: %q", info.Name, p)
		}
	}
	if slices.Sort(got); !slices.Equal(got, keys[:5]) {
		t.Errorf("%q", got)
	}
	got = nil
	for name, err := range b.Names(ctx, "a b/") {
		must(t, err)
		got = append(got, name)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"_SUCCESS", "ds=2026-11-01", "ds=2026-11-01/"}) {
		t.Errorf("%q", got)
	}

	before, err := b.Stat(ctx, "top")
	must(t, err)
	server.Put(t, "dumps", "top", bytes.Repeat([]byte("x"), 100))
	if err := b.ReadAt(ctx, before, make([]byte, 5), 0); !errors.Is(err, object.ErrChanged) {
		t.Errorf("replaced: %v", err)
	}
	for _, key := range []string{"none", "a b/ds=2026-11-01"} {
		if _, err := b.Stat(ctx, key); !errors.Is(err, object.ErrNotFound) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if err := b.ReadAt(ctx, object.Info{Name: "none"}, make([]byte, 5), 0); !errors.Is(err, object.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
	none, err := object.OpenBucket("az", "no-such-container", server.Options())
	must(t, err)
	for _, err := range none.List(ctx, "") {
		if err == nil || !strings.Contains(err.Error(), "no-such-container") {
			t.Errorf("list of no container: %v", err)
		}
	}
}

// A container of an account with a hierarchical namespace, which lists folders as blobs and in another order, has no
// store, and is a source. Its URI is Hadoop's.
func TestHierarchicalBucket(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/lake" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		fmt.Fprint(w, "<EnumerationResults><Blobs>")
		for _, item := range [][2]string{{"d", "directory"}, {"d/x", "file"}, {"d-1", "file"}} {
			fmt.Fprintf(w, "<Blob><Name>%s</Name><Properties><Content-Length>1</Content-Length><Etag>e</Etag>"+
				"<ResourceType>%s</ResourceType></Properties></Blob>", item[0], item[1])
		}
		fmt.Fprint(w, "</Blobs><NextMarker/></EnumerationResults>")
	}))
	t.Cleanup(server.Close)
	b, err := object.OpenBucket("abfss", "lake@account.dfs.core.windows.net",
		map[string]string{"endpoint": server.URL, "anon": "true"})
	must(t, err)
	var got []string
	for info, err := range b.List(t.Context(), "") {
		must(t, err)
		got = append(got, info.Name)
	}
	if !slices.Equal(got, []string{"d/x", "d-1"}) {
		t.Errorf("%q", got)
	}
	for _, uri := range [][2]string{{"az", "key@lake"}, {"abfss", "key:secret@lake"}, {"abfss", "lake@elsewhere.org"}} {
		if _, err := object.OpenBucket(uri[0], uri[1], nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s://%s: %v", uri[0], uri[1], err)
		}
	}
}
