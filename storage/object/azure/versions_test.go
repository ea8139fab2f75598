package azure_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// What a writer that was aborted or killed has sent is listed with its age, and can be dropped; one that goes on after
// that gets an error.
func TestUploads(t *testing.T) {
	const container = "uploads"
	server, ctx := start(t), t.Context()
	must(t, server.Create(ctx, container))
	s, err := object.OpenWith("az://"+container+"/store", server.Options())
	must(t, err)
	must(t, s.PutIfAbsent(ctx, "u/whole", []byte("x")))
	must(t, s.PutIfAbsent(ctx, "u/empty", nil))
	of, ok := object.As[object.Unfinished](s)
	if !ok {
		t.Fatal("it lists no uploads")
	}
	var writers []object.Writer
	for _, name := range []string{"u/aborted", "u/goes-on"} {
		w, err := s.Create(ctx, name)
		must(t, err)
		_, err = w.Write(large(17 << 20))
		must(t, err)
		writers = append(writers, w)
	}
	for i := 0; server.Uploads(t, container) < 2; i++ { // the parts are sent in the background
		if time.Sleep(10 * time.Millisecond); i == 1000 {
			t.Fatal("no parts came")
		}
	}
	writers[0].Abort()
	all, err := of.Temporary(ctx)
	must(t, err)
	if len(all) != 2 {
		t.Fatalf("%+v", all)
	}
	for _, o := range all {
		if age := time.Since(time.Unix(0, o.ModTime)); age < -time.Minute || age > time.Minute {
			t.Errorf("%s is %s old", o.Name, age)
		}
		must(t, of.RemoveTemporary(ctx, o.Name))
		must(t, of.RemoveTemporary(ctx, o.Name))
	}
	for i := 0; server.Uploads(t, container) != 0; i++ { // of parts that were on their way
		if time.Sleep(20 * time.Millisecond); i == 100 {
			t.Fatalf("%d uploads are left", server.Uploads(t, container))
		}
		for _, o := range all {
			must(t, of.RemoveTemporary(ctx, o.Name))
		}
	}
	if err := writers[1].Commit(ctx); err == nil {
		t.Error("committed without its parts")
	}
	var names []string
	for info, err := range s.List(ctx, "", "") {
		must(t, err)
		names = append(names, info.Name)
	}
	if !slices.Equal(names, []string{"u/empty", "u/whole"}) {
		t.Error(names)
	}
}

// keeping is a service with versions and soft delete.
type keeping struct {
	mu      sync.Mutex
	items   []item // guarded by mu
	refuses bool   // to delete for good
}

type item struct {
	name, version, snapshot string
	current, deleted        bool
}

func (k *keeping) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := r.URL.Query()
	if q.Get("comp") == "list" {
		fmt.Fprint(w, "<EnumerationResults><Blobs>")
		for _, i := range k.items {
			fmt.Fprintf(w, "<Blob><Name>store/%s</Name><Snapshot>%s</Snapshot><Deleted>%v</Deleted>", i.name,
				i.snapshot, i.deleted)
			if i.version != "" {
				fmt.Fprintf(w, "<VersionId>%s</VersionId><IsCurrentVersion>%v</IsCurrentVersion>", i.version,
					i.current)
			}
			fmt.Fprint(w, "<Properties><Content-Length>5</Content-Length><Etag>e</Etag></Properties></Blob>")
		}
		fmt.Fprint(w, "</Blobs><NextMarker/></EnumerationResults>")
		return
	}
	permanent := strings.EqualFold(q.Get("deletetype"), "permanent")
	if permanent && k.refuses {
		w.Header().Set("x-ms-error-code", "PermanentDeleteNotAllowed")
		w.WriteHeader(http.StatusConflict)
		return
	}
	for n, i := range k.items {
		if !strings.HasSuffix(r.URL.Path, "/store/"+i.name) || i.version != q.Get("versionid") ||
			i.snapshot != q.Get("snapshot") || i.deleted != permanent {
			continue
		}
		if k.items[n].deleted = true; permanent {
			k.items = slices.Delete(k.items, n, n+1)
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("x-ms-error-code", "BlobNotFound")
	w.WriteHeader(http.StatusNotFound)
}

// Versions and snapshots go for good, also where soft delete keeps what was deleted; what it keeps against us is an
// error, and objects stay. The service is one of the test's: Azurite keeps no versions.
func TestRemoveVersions(t *testing.T) {
	ctx := t.Context()
	match := func(name string) bool { return name != "other" }
	// A service of its own for each case: a request that a failure cancelled may reach its service later.
	open := func(refuses bool, more ...item) (*keeping, object.Versioned) {
		t.Helper()
		k := &keeping{refuses: refuses, items: append([]item{
			{name: "a", version: "1"}, {name: "a", version: "2", current: true}, {name: "b", version: "1"},
			{name: "c", snapshot: "s"}, {name: "c"}, {name: "d", version: "1", deleted: true},
			{name: "other", version: "1"},
		}, more...)}
		server := httptest.NewServer(k)
		t.Cleanup(server.Close)
		s, err := object.OpenWith("az://tables/store", map[string]string{
			"endpoint": server.URL, "anon": "true",
		})
		must(t, err)
		v, ok := object.As[object.Versioned](s)
		if !ok {
			t.Fatal("it says nothing about versions")
		}
		return k, v
	}
	k, v := open(false)
	if keeps, err := v.KeepsVersions(ctx); err != nil || !keeps {
		t.Error(keeps, err)
	}
	n, bytes, err := v.RemoveVersions(ctx, "", match)
	want := []item{{name: "a", version: "2", current: true}, {name: "c"}, {name: "other", version: "1"}}
	k.mu.Lock()
	left := slices.Clone(k.items)
	k.mu.Unlock()
	if err != nil || n != 4 || bytes != 20 || !slices.Equal(left, want) {
		t.Errorf("%d removed, of %d bytes, %v; left %+v", n, bytes, err, left)
	}
	_, v = open(true)
	if _, _, err := v.RemoveVersions(ctx, "", match); !errors.Is(err, object.ErrDenied) {
		t.Error(err)
	}
	_, v = open(false, item{name: "e", deleted: true})
	_, _, err = v.RemoveVersions(ctx, "", match)
	if !errors.Is(err, object.ErrDenied) || !strings.Contains(err.Error(), "object e") {
		t.Error(err)
	}
}
