package s3_test

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
)

// Many objects are deleted by few requests, also where some are not there.
func TestDeleteAll(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	proxy := objectserver.StartProxy(t, server.Endpoint)
	s := object.NewCounted(open(t, server, proxy))
	ctx := t.Context()
	var names []string
	for i := range 2050 {
		names = append(names, fmt.Sprintf("all/%04d", i))
	}
	must(t, object.Parallel(ctx, object.RequestsAtOnce, 1900, func(ctx context.Context, i int) error {
		return s.PutIfAbsent(ctx, names[i], nil)
	}))
	must(t, s.PutIfAbsent(ctx, "allowed", nil))
	must(t, object.DeleteAll(ctx, s, names))
	for info, err := range s.List(ctx, "all", "") {
		if must(t, err); info.Name != "allowed" {
			t.Fatalf("%s is there", info.Name)
		}
	}
	if got := s.Counts().Deletes; got != 3 {
		t.Errorf("%d requests", got)
	}
	if err := object.DeleteAll(ctx, s, []string{"a", "../b"}); err == nil {
		t.Error("a name that no object has")
	}
}

// partly answers requests that delete objects, one answer each, as a service that is too busy for some of them.
type partly struct {
	t      *testing.T
	refuse func(key, attempt int) (code string) // "": it is deleted
	sent   [][]string
}

func (p *partly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Object []struct{ Key string }
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = xml.Unmarshal(body, &asked)
	}
	if err != nil || !r.URL.Query().Has("delete") {
		p.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	if sum := md5.Sum(body); r.Header.Get("Content-MD5") != base64.StdEncoding.EncodeToString(sum[:]) {
		p.t.Errorf("Content-MD5 %q: other services than AWS want it", r.Header.Get("Content-MD5"))
	}
	var keys []string
	answer := "<DeleteResult>"
	for _, o := range asked.Object {
		keys = append(keys, o.Key)
		var key int
		if _, err := fmt.Sscanf(o.Key, "store/%d", &key); err != nil {
			p.t.Error(err)
		}
		if code := p.refuse(key, len(p.sent)); code != "" {
			answer += "<Error><Key>" + o.Key + "</Key><Code>" + code + "</Code><Message>busy</Message></Error>"
		}
	}
	p.sent = append(p.sent, keys)
	fmt.Fprint(w, answer, "</DeleteResult>")
}

// A request that the service has done in part is sent again for the rest, and what is refused for good is named.
func TestDeleteInPart(t *testing.T) {
	defer func(n int) { endpoint.Attempts = n }(endpoint.Attempts)
	endpoint.Attempts = 5
	p := &partly{t: t}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	s, err := object.OpenWith("s3://b/store", map[string]string{
		"aws_endpoint": server.URL, "aws_access_key_id": "a", "aws_secret_access_key": "b",
	})
	must(t, err)
	for _, c := range []struct {
		name   string
		refuse func(key, attempt int) string
		sent   string
		err    error
		says   string
	}{
		{"some, twice", func(key, attempt int) string {
			if key > attempt*2 {
				return "SlowDown"
			}
			return ""
		}, "[0 1 2 3 4] [1 2 3 4] [3 4]", nil, ""},
		{"one that is gone", func(key, _ int) string {
			if key == 3 {
				return "NoSuchKey"
			}
			return ""
		}, "[0 1 2 3 4]", nil, ""},
		{"locked", func(key, _ int) string {
			if key == 2 {
				return "AccessDenied"
			}
			return ""
		}, "[0 1 2 3 4]", object.ErrDenied, "object 2: "},
		{"locked and busy", func(key, attempt int) string {
			switch {
			case key == 1 || key >= 3:
				return "AccessDenied"
			case attempt == 0:
				return "SlowDown"
			}
			return ""
		}, "[0 1 2 3 4] [0 2]", object.ErrDenied, "refused too: 3, 4"},
		{"busy for ever", func(key, _ int) string {
			if key == 4 {
				return "SlowDown"
			}
			return ""
		}, "[0 1 2 3 4] [4] [4] [4] [4]", object.ErrThrottled, "object 4: "},
	} {
		p.refuse, p.sent = c.refuse, nil
		err := object.DeleteAll(t.Context(), s, []string{"0", "1", "2", "3", "4"})
		var sent []string
		for _, keys := range p.sent {
			sent = append(sent, strings.ReplaceAll(fmt.Sprint(keys), "store/", ""))
		}
		if got := strings.Join(sent, " "); got != c.sent || !errors.Is(err, c.err) ||
			c.err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: sent %s, want %s; %v", c.name, got, c.sent, err)
		}
	}
}

// What a bucket keeps of objects that were deleted and truncated goes, of those that match; the objects stay, and none
// comes back.
func TestRemoveVersions(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	s := open(t, server, nil)
	kept, ok := object.As[object.Versioned](s)
	if !ok {
		t.Fatal("it says nothing about versions")
	}
	ctx := t.Context()
	if keeps, err := kept.KeepsVersions(ctx); err != nil || keeps {
		t.Fatal(keeps, err)
	}
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
		// versitygw refuses a creation where the newest version is a mark of deletion; this has no condition.
		must(t, s.Truncate(ctx, object.Info{Name: dir + "again"}))
		put(dir+"truncated", "secret")
		info, err := s.Stat(ctx, dir+"truncated")
		must(t, err)
		must(t, s.Truncate(ctx, info))
		put(dir+"whole", "whole")
	}
	// More of one key than a page lists, so that a mark of deletion and what it hides lie on different ones.
	for range 700 {
		must(t, s.Truncate(ctx, object.Info{Name: "d/often"}))
		must(t, s.Delete(ctx, "d/often"))
	}
	removed, size, err := kept.RemoveVersions(ctx, "d/", func(name string) bool { return name != "d/whole" })
	must(t, err)
	if removed != 3+700 || size != 3*int64(len("secret")) {
		t.Errorf("%d versions of %d bytes removed", removed, size)
	}
	var left []string
	for _, v := range server.Versions(t, bucket) {
		name := v.Key[strings.Index(v.Key, "/")+1:]
		if dir, rest, _ := strings.Cut(name, "/"); dir == "d" {
			left = append(left, rest)
			if v.Mark || !v.Latest || string(server.Bytes(t, bucket, v)) == "secret" {
				t.Errorf("%+v is left", v)
			}
		}
	}
	slices.Sort(left)
	if want := []string{"again", "truncated", "whole"}; !slices.Equal(left, want) {
		t.Errorf("left: %v", left)
	}
	hidden := 0
	for _, v := range server.Versions(t, bucket) {
		if strings.Contains(v.Key, "/other/") && !v.Mark && string(server.Bytes(t, bucket, v)) == "secret" {
			hidden++
		}
	}
	if hidden != 3 {
		t.Errorf("%d versions of other names are left, of 3", hidden)
	}
	if got := content(t, s, "d/whole"); string(got) != "whole" {
		t.Errorf("d/whole holds %q", got)
	}
}

// Who may not list versions is told when it is asked whether there are some.
func TestVersionsDenied(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	proxy := objectserver.StartProxy(t, server.Endpoint)
	kept, _ := object.As[object.Versioned](open(t, server, proxy))
	proxy.Break(func(r *http.Request) objectserver.Fault {
		if r.URL.Query().Has("versions") {
			return objectserver.Fault{Status: http.StatusForbidden, Code: "AccessDenied"}
		}
		return objectserver.Fault{}
	})
	if keeps, err := kept.KeepsVersions(t.Context()); err != nil || keeps { // it keeps none
		t.Error(keeps, err)
	}
	server.KeepVersions(t, bucket)
	if _, err := kept.KeepsVersions(t.Context()); !errors.Is(err, object.ErrDenied) ||
		!strings.Contains(err.Error(), "s3:ListBucketVersions") {
		t.Error(err)
	}
}

// versions is a service with pages of versions. It is busy at first, and leaves versions out of what it answers then.
type versions struct {
	t       *testing.T
	pages   []string // of a listing
	deleted []string // key and version of each
	busy    bool
}

func (v *versions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("versions") {
		page := 0
		if m := r.URL.Query().Get("version-id-marker"); m != "" {
			fmt.Sscan(m, &page)
		}
		fmt.Fprintf(w, "<ListVersionsResult><Name>b</Name>%s</ListVersionsResult>", v.pages[page])
		return
	}
	var asked struct {
		Object []struct{ Key, VersionId string }
	}
	if err := xml.NewDecoder(r.Body).Decode(&asked); err != nil {
		v.t.Error(err)
	}
	answer := "<DeleteResult>"
	for _, o := range asked.Object {
		if v.busy {
			answer += "<Error><Key>" + o.Key + "</Key><Code>InternalError</Code></Error>"
			continue
		}
		v.deleted = append(v.deleted, strings.TrimPrefix(o.Key, "store/")+" "+o.VersionId)
	}
	v.busy = false
	fmt.Fprint(w, answer, "</DeleteResult>")
}

// A version that is deleted again after an error is the same version, a mark outlives the versions of its key also
// where a page is empty, and marks without an id of their own stay.
func TestRemoveVersionsInPart(t *testing.T) {
	version := func(key, id string, latest bool) string {
		return fmt.Sprintf("<Version><Key>store/%s</Key><VersionId>%s</VersionId><IsLatest>%v</IsLatest></Version>",
			key, id, latest)
	}
	mark := func(key, id string) string {
		return "<DeleteMarker><Key>store/" + key + "</Key><VersionId>" + id +
			"</VersionId><IsLatest>true</IsLatest></DeleteMarker>"
	}
	more := func(key string, page int) string {
		return fmt.Sprintf("<IsTruncated>true</IsTruncated><NextKeyMarker>store/%s</NextKeyMarker>"+
			"<NextVersionIdMarker>%d</NextVersionIdMarker>", key, page)
	}
	v := &versions{t: t, busy: true, pages: []string{
		version("a", "new", true) + version("a", "old", false) + mark("b", "mark") + mark("c", "null") + more("b", 1),
		more("b", 2),
		version("b", "old", false) + version("d", "null", true),
	}}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	s, err := object.OpenWith("s3://b/store", map[string]string{
		"aws_endpoint": server.URL, "aws_access_key_id": "a", "aws_secret_access_key": "b",
	})
	must(t, err)
	kept, _ := object.As[object.Versioned](s)
	n, _, err := kept.RemoveVersions(t.Context(), "", func(string) bool { return true })
	if want := []string{"a old", "b old", "b mark"}; err != nil || n != 2 || !slices.Equal(v.deleted, want) {
		t.Errorf("%d removed, %v: deleted %q, want %q", n, err, v.deleted, want)
	}
}
