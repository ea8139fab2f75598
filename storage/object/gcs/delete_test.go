package gcs_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
)

// Many objects are deleted by few requests, also where some are not there.
func TestDeleteAll(t *testing.T) {
	proxy := objectserver.StartProxy(t, objectserver.StartGCS(t, bucket).Endpoint)
	s := object.NewCounted(open(t, proxy.URL))
	ctx := t.Context()
	var names []string
	for i := range 450 {
		names = append(names, fmt.Sprintf("all/%%2F+%04d", i))
	}
	must(t, object.Parallel(ctx, object.RequestsAtOnce, 400, func(ctx context.Context, i int) error {
		return s.PutIfAbsent(ctx, names[i], nil)
	}))
	must(t, s.PutIfAbsent(ctx, "allowed", nil))
	var requests atomic.Int64
	proxy.Break(func(*http.Request) objectserver.Fault { requests.Add(1); return objectserver.Fault{} })
	must(t, object.DeleteAll(ctx, s, names))
	if got := requests.Load(); got != 5 || s.Counts().Deletes != got {
		t.Errorf("%d requests, %d counted", got, s.Counts().Deletes)
	}
	for info, err := range s.List(ctx, "all", "") {
		if must(t, err); info.Name != "allowed" {
			t.Fatalf("%s is there", info.Name)
		}
	}
	if err := object.DeleteAll(ctx, s, []string{"a", "../b"}); err == nil {
		t.Error("a name that no object has")
	}
}

// partly answers batches as a service that is too busy for some of their requests: in another order than theirs.
type partly struct {
	t      *testing.T
	refuse func(name string, attempt int) (status int) // 0: it is deleted; -1: it is left out
	sent   []string
}

func (p *partly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || r.URL.Path != "/batch/storage/v1" {
		p.t.Errorf("%s: %v", r.URL, err)
	}
	parts := multipart.NewReader(r.Body, params["boundary"])
	var names, answers []string
	for {
		part, err := parts.NextPart()
		if err != nil {
			break
		}
		ask, err := http.ReadRequest(bufio.NewReader(part))
		if err != nil || ask.Method != http.MethodDelete {
			p.t.Error(ask, err)
			return
		}
		key, err := url.PathUnescape(strings.TrimPrefix(ask.URL.EscapedPath(), "/storage/v1/b/b/o/"))
		name, ok := strings.CutPrefix(key, "store/")
		if err != nil || !ok {
			p.t.Error(key, err)
		}
		names = append(names, name)
		status := p.refuse(name, len(p.sent))
		if status < 0 {
			continue
		}
		if status == 0 {
			status = http.StatusNoContent
		}
		id := strings.Replace(part.Header.Get("Content-ID"), "<", "<response-", 1)
		answers = append(answers, fmt.Sprintf("--b\r\nContent-Type: application/http\r\nContent-ID: %s\r\n\r\n"+
			"HTTP/1.1 %d %s\r\nContent-Length: 0\r\n\r\n\r\n", id, status, http.StatusText(status)))
	}
	p.sent = append(p.sent, fmt.Sprint(names))
	slices.Reverse(answers)
	w.Header().Set("Content-Type", "multipart/mixed; boundary=b")
	_, _ = io.WriteString(w, strings.Join(answers, "")+"--b--\r\n")
}

// A request that the service has done in part is sent again for the rest, and what is refused for good is named.
func TestDeleteInPart(t *testing.T) {
	defer func(n int) { endpoint.Attempts = n }(endpoint.Attempts)
	endpoint.Attempts = 5
	p := &partly{t: t}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	s, err := object.OpenWith("gs://b/store", map[string]string{"endpoint": server.URL})
	must(t, err)
	for _, c := range []struct {
		name   string
		refuse func(name string, attempt int) int
		sent   string
		err    error
		says   string
	}{
		{"some, twice", func(name string, attempt int) int {
			if int(name[0]-'0') > attempt*2 {
				return http.StatusServiceUnavailable
			}
			return 0
		}, "[0 1 2 3 4] [1 2 3 4] [3 4]", nil, ""},
		{"one that is gone", func(name string, _ int) int {
			if name == "3" {
				return http.StatusNotFound
			}
			return 0
		}, "[0 1 2 3 4]", nil, ""},
		{"no answer to one", func(name string, attempt int) int {
			if name == "3" && attempt == 0 {
				return -1
			}
			return 0
		}, "[0 1 2 3 4] [3]", nil, ""},
		{"protected", func(name string, _ int) int {
			if name == "2" {
				return http.StatusForbidden
			}
			return 0
		}, "[0 1 2 3 4]", object.ErrDenied, "object 2: "},
		{"protected and busy", func(name string, attempt int) int {
			switch {
			case name == "1" || name >= "3":
				return http.StatusForbidden
			case attempt == 0:
				return http.StatusServiceUnavailable
			}
			return 0
		}, "[0 1 2 3 4] [0 2]", object.ErrDenied, "refused too: 3, 4"},
		{"busy for ever", func(name string, _ int) int {
			if name == "4" {
				return http.StatusTooManyRequests
			}
			return 0
		}, "[0 1 2 3 4] [4] [4] [4] [4]", object.ErrThrottled, "object 4: "},
	} {
		p.refuse, p.sent = c.refuse, nil
		err := object.DeleteAll(t.Context(), s, []string{"0", "1", "2", "3", "4"})
		if got := strings.Join(p.sent, " "); got != c.sent || !errors.Is(err, c.err) ||
			c.err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: sent %s, want %s; %v", c.name, got, c.sent, err)
		}
	}
}

// What a bucket keeps of objects that were deleted and truncated goes, of those that match; the objects stay, and none
// comes back.
func TestRemoveVersions(t *testing.T) {
	server := objectserver.StartGCS(t, bucket)
	s := open(t, server.Endpoint)
	kept, ok := object.As[object.Versioned](s)
	if !ok {
		t.Fatal("it says nothing about versions")
	}
	ctx := t.Context()
	server.KeepVersions(t, bucket)
	if keeps, err := kept.KeepsVersions(ctx); err != nil || !keeps {
		t.Fatal(keeps, err)
	}
	put := func(name, data string) { must(t, s.PutIfAbsent(ctx, name, []byte(data))) }
	for _, dir := range []string{"d/", "other/"} {
		put(dir+"deleted", "secret")
		must(t, s.Delete(ctx, dir+"deleted"))
		put(dir+"again", "secret")
		must(t, s.Delete(ctx, dir+"again"))
		put(dir+"again", "whole")
		put(dir+"truncated", "secret")
		info, err := s.Stat(ctx, dir+"truncated")
		must(t, err)
		must(t, s.Truncate(ctx, info))
		put(dir+"whole", "whole")
	}
	// Many of several keys, so that pages end between them.
	for i := range 1500 {
		name := fmt.Sprintf("d/often/%d", i%300)
		put(name, "")
		must(t, s.Delete(ctx, name))
	}
	removed, size, err := kept.RemoveVersions(ctx, "d/", func(name string) bool { return name != "d/whole" })
	must(t, err)
	if removed < 3+1500 || size != 3*int64(len("secret")) { // the server lists some of a key on two pages
		t.Errorf("%d versions of %d bytes removed", removed, size)
	}
	var left []string
	hidden := 0
	for _, v := range server.Versions(t, bucket) {
		name := v.Key[strings.Index(v.Key, "/")+1:]
		data := string(server.Bytes(t, bucket, v))
		switch dir, rest, _ := strings.Cut(name, "/"); {
		case dir == "d":
			left = append(left, rest)
			if !v.Latest || data == "secret" {
				t.Errorf("%+v is left", v)
			}
		case data == "secret":
			hidden++
		}
	}
	slices.Sort(left)
	if want := []string{"again", "truncated", "whole"}; !slices.Equal(left, want) {
		t.Errorf("left: %v", left)
	}
	if hidden != 3 {
		t.Errorf("%d versions of another prefix are left", hidden)
	}
}

// A bucket with soft delete keeps what is deleted: nothing can be erased from it, and that is said before the work and
// after it.
func TestSoftDelete(t *testing.T) {
	seconds := "604800"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Get("fields") == "softDeletePolicy":
			fmt.Fprintf(w, `{"softDeletePolicy": {"retentionDurationSeconds": %q}}`, seconds)
		case q.Get("softDeleted") == "true":
			fmt.Fprint(w, `{"items": [{"name": "store/d/a", "size": "1", "softDeleteTime": "2026-01-01T00:00:00Z",
				"hardDeleteTime": "2026-01-08T00:00:00Z"}]}`)
		default:
			fmt.Fprint(w, `{}`)
		}
	}))
	t.Cleanup(server.Close)
	s, err := object.OpenWith("gs://b/store", map[string]string{"endpoint": server.URL})
	must(t, err)
	kept, _ := object.As[object.Versioned](s)
	if _, err := kept.KeepsVersions(t.Context()); !errors.Is(err, object.ErrDenied) ||
		!strings.Contains(err.Error(), "168h") {
		t.Error(err)
	}
	seconds = "0"
	if keeps, err := kept.KeepsVersions(t.Context()); err != nil || !keeps {
		t.Error(keeps, err)
	}
	_, _, err = kept.RemoveVersions(t.Context(), "d/", func(string) bool { return true })
	if !errors.Is(err, object.ErrDenied) || !strings.Contains(err.Error(), "object d/a") ||
		!strings.Contains(err.Error(), "2026-01-08") {
		t.Error(err)
	}
	if _, _, err = kept.RemoveVersions(t.Context(), "d/", func(string) bool { return false }); err != nil {
		t.Error(err)
	}
}
