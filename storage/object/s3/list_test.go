package s3_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/storage/object"
)

// Who wants the first object asks for one name, and gets one that a table can have.
func TestFirst(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	proxy := objectserver.StartProxy(t, server.Endpoint)
	s := object.NewThrottled(object.NewCounted(open(t, server, proxy)), 1<<40)
	for i := range 20 {
		must(t, s.PutIfAbsent(t.Context(), fmt.Sprintf("b/%d", i), nil))
	}
	server.Put(t, bucket, s.URI()[len("s3://"+bucket+"/"):]+"/b/ no name", nil) // sorts before the others
	var asked, more atomic.Int64
	proxy.Break(func(r *http.Request) objectserver.Fault {
		if q := r.URL.Query(); q.Has("list-type") {
			asked.Add(1)
			if q.Get("max-keys") != "1" {
				more.Add(1)
			}
		}
		return objectserver.Fault{}
	})
	first, ok, err := object.First(t.Context(), s, "b/", "b/0")
	if err != nil || !ok || first.Name != "b/1" || asked.Load() != 1 || more.Load() > 0 {
		t.Errorf("%+v %v %v: asked %d times, %d of them for more", first, ok, err, asked.Load(), more.Load())
	}
	// Where the first is no table's, the next come in one page.
	first, ok, err = object.First(t.Context(), s, "b/", "")
	if err != nil || !ok || first.Name != "b/0" || asked.Load() != 3 || more.Load() != 1 {
		t.Errorf("%+v %v %v: asked %d times, %d of them for more", first, ok, err, asked.Load(), more.Load())
	}
	if _, ok, err := object.First(t.Context(), s, "b/", "b/9"); ok || err != nil {
		t.Error(ok, err)
	}
}

// An answer that breaks off is asked for again: of a listing, of a deletion, and of the end of an upload.
func TestBrokenAnswers(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	proxy := objectserver.StartProxy(t, server.Endpoint)
	s := open(t, server, proxy)
	ctx := t.Context()
	for _, cut := range []int64{10, 100} { // before the first element, and after it
		dir := fmt.Sprintf("cut-%d/", cut)
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprintf("%s%02d", dir, i))
			must(t, s.PutIfAbsent(ctx, names[i], nil))
		}
		var requests atomic.Int64
		proxy.Break(func(r *http.Request) objectserver.Fault {
			q := r.URL.Query()
			if (q.Has("list-type") || q.Has("delete") || r.Method == http.MethodPost && q.Has("uploadId")) &&
				requests.Add(1)%2 == 1 {
				return objectserver.Fault{Cut: cut}
			}
			return objectserver.Fault{}
		})
		n := 0
		for _, err := range s.List(ctx, dir, "") {
			must(t, err)
			n++
		}
		if n != 20 || requests.Load() != 2 {
			t.Errorf("%d names, %d requests", n, requests.Load())
		}
		data := large(9 << 20)
		must(t, put(ctx, s, dir+"parts", data))
		if requests.Load() != 4 || !bytes.Equal(content(t, s, dir+"parts"), data) {
			t.Errorf("other bytes, or %d requests", requests.Load())
		}
		must(t, object.DeleteAll(ctx, s, names))
		if requests.Load() != 6 {
			t.Errorf("%d requests", requests.Load())
		}
		proxy.Break(nil)
	}
}

// An answer to the end of an upload that says nothing is no success: whose object is there says who made it.
func TestEmptyAnswer(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	to, err := url.Parse(server.Endpoint)
	must(t, err)
	var passes atomic.Bool
	ends := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // it is signed
			if end := r.In.Method == http.MethodPost && r.In.URL.Query().Has("uploadId"); end && !passes.Load() {
				r.Out.Method, r.Out.Body, r.Out.ContentLength = http.MethodHead, nil, 0 // it has no effect
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Query().Has("uploadId") && r.Request.Method != http.MethodPut {
				_ = r.Body.Close()
				r.StatusCode, r.Body, r.ContentLength = http.StatusOK, http.NoBody, 0
				r.Header = http.Header{"Content-Length": {"0"}}
			}
			return nil
		},
	})
	t.Cleanup(ends.Close)
	options := server.Options()
	options["aws_endpoint"] = ends.URL
	s, err := object.OpenWith("s3://"+bucket+"/empty", options)
	must(t, err)
	if err := put(t.Context(), s, "a", large(9<<20)); err == nil || !strings.Contains(err.Error(), "no ETag") {
		t.Errorf("an upload that was not ended: %v", err)
	}
	passes.Store(true)
	must(t, put(t.Context(), s, "a", large(9<<20)))
	if !bytes.Equal(content(t, s, "a"), large(9<<20)) {
		t.Error("other bytes")
	}
}

// A listing or a deletion that is answered by nothing is asked for again: it is neither empty nor done.
func TestAnswerWithoutBody(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	to, err := url.Parse(server.Endpoint)
	must(t, err)
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		lists := q.Has("list-type") || q.Has("uploads") && r.Method == http.MethodGet
		if (lists || q.Has("delete")) && asked.Add(1)%2 == 1 {
			return
		}
		(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			p.Out.Host = p.In.Host // it is signed
		}}).ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	options := server.Options()
	options["aws_endpoint"] = proxy.URL
	s, err := object.OpenWith("s3://"+bucket+"/silent", options)
	must(t, err)
	must(t, s.PutIfAbsent(t.Context(), "a", []byte("x")))
	must(t, s.PutIfAbsent(t.Context(), "b", []byte("x")))
	list := func() (n int) {
		for _, err := range s.List(t.Context(), "", "") {
			must(t, err)
			n++
		}
		return n
	}
	if n := list(); n != 2 || asked.Load() != 2 {
		t.Errorf("%d names, %d requests", n, asked.Load())
	}
	if _, err := s.(object.Unfinished).Temporary(t.Context()); err != nil || asked.Load() != 4 {
		t.Errorf("%d requests, %v", asked.Load(), err)
	}
	must(t, object.DeleteAll(t.Context(), s, []string{"a", "b"}))
	if n := list(); n != 0 || asked.Load() != 8 {
		t.Errorf("%d names, %d requests", n, asked.Load())
	}
}

// encoding is a service that lists some keys, in pages of one, and escapes them where it knows how and is asked to. XML
// cannot have the first of them otherwise.
type encoding struct {
	t     *testing.T
	knows bool
}

func (e encoding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	keys := []string{"store/a\x01b", "store/d+e%41", "store/f g/h"}
	escape, how := func(k string) string { return k }, ""
	switch {
	case q.Get("encoding-type") != "url":
		e.t.Errorf("%s", r.URL)
	case e.knows:
		escape = func(k string) string { return strings.ReplaceAll(url.QueryEscape(k), "%2F", "/") }
		how = "<EncodingType>url</EncodingType>"
	default:
		keys = keys[1:]
	}
	after := q.Get("key-marker")
	if token, err := base64.StdEncoding.DecodeString(q.Get("continuation-token")); err != nil {
		e.t.Error(err)
	} else if len(token) > 0 {
		after = string(token)
	}
	i := 0
	for i < len(keys)-1 && keys[i] <= after {
		i++
	}
	key, id := escape(keys[i]), "<VersionId>v</VersionId><IsLatest>false</IsLatest>"
	next, token := "<NextKeyMarker>"+key+"</NextKeyMarker>", ""
	if i < len(keys)-1 {
		token = base64.StdEncoding.EncodeToString([]byte(keys[i]))
		token = "<NextContinuationToken>" + token + "</NextContinuationToken>"
	}
	more := fmt.Sprintf("<IsTruncated>%v</IsTruncated>", i < len(keys)-1)
	switch {
	case q.Has("versions"):
		fmt.Fprint(w, "<ListVersionsResult>", how, more, next, "<NextVersionIdMarker>v</NextVersionIdMarker><Version>",
			"<Key>", key, "</Key>", id, "</Version></ListVersionsResult>")
	case q.Has("uploads"):
		fmt.Fprint(w, "<ListMultipartUploadsResult>", how, more, next, "<Upload><Key>", key,
			"</Key><UploadId>u</UploadId></Upload></ListMultipartUploadsResult>")
	case q.Has("delimiter"):
		fmt.Fprint(w, "<ListBucketResult>", how, more, token, "<CommonPrefixes><Prefix>", key,
			"</Prefix></CommonPrefixes></ListBucketResult>")
	default:
		fmt.Fprint(w, "<ListBucketResult>", how, more, token, "<Contents><Key>", key,
			"</Key></Contents></ListBucketResult>")
	}
}

// Keys that XML cannot have are listed, and those of a service that knows no escapes are taken as they are.
func TestEscapedKeys(t *testing.T) {
	for _, knows := range []bool{true, false} {
		server := httptest.NewServer(encoding{t, knows})
		options := map[string]string{"aws_endpoint": server.URL, "aws_access_key_id": "a", "aws_secret_access_key": "b"}
		b, err := object.OpenBucket("s3", "b", options)
		must(t, err)
		s, err := object.OpenWith("s3://b/store", options)
		must(t, err)
		want := []string{"a\x01b", "d+e%41", "f g/h"}
		if !knows {
			want = want[1:]
		}
		got := map[string][]string{}
		for info, err := range b.List(t.Context(), "store/") {
			must(t, err)
			got["List"] = append(got["List"], strings.TrimPrefix(info.Name, "store/"))
		}
		for name, err := range b.Names(t.Context(), "store/") {
			must(t, err)
			got["Names"] = append(got["Names"], name)
		}
		kept, _ := object.As[object.Versioned](s)
		_, _, err = kept.RemoveVersions(t.Context(), "", func(name string) bool {
			got["RemoveVersions"] = append(got["RemoveVersions"], name)
			return false
		})
		must(t, err)
		for what, names := range got {
			if !slices.Equal(names, want) {
				t.Errorf("%s: %q", what, names)
			}
		}
		uploads, _ := object.As[object.Unfinished](s)
		all, err := uploads.Temporary(t.Context())
		if err != nil || len(all) != 1 || all[0].Name != "d+e%41?uploadId=u" || len(got) != 3 {
			t.Errorf("%+v, %v; %q", all, err, got)
		}
		var names []string
		for info, err := range s.List(t.Context(), "", "") {
			must(t, err)
			names = append(names, info.Name)
		}
		if !slices.Equal(names, want[len(want)-2:len(want)-1]) {
			t.Errorf("%q", names)
		}
		server.Close()
	}
}

// An object of unknown size is one request while it is small, and whole where the answer breaks off.
func TestReadWhole(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	proxy := objectserver.StartProxy(t, server.Endpoint)
	s := object.NewCounted(open(t, server, proxy))
	small, data := large(200<<10), large(900<<10)
	must(t, s.PutIfAbsent(t.Context(), "small", small))
	must(t, s.PutIfAbsent(t.Context(), "large", data))
	var asked atomic.Int64
	for _, cut := range []int64{0, 100 << 10} {
		proxy.Break(func(*http.Request) objectserver.Fault {
			if asked.Add(1) == 1 {
				return objectserver.Fault{Cut: cut}
			}
			return objectserver.Fault{}
		})
		for name, want := range map[string][]byte{"small": small, "large": data} {
			asked.Store(0)
			got, size, err := object.ReadWhole(t.Context(), s, name, 1<<20)
			if err != nil || size != int64(len(want)) || !bytes.Equal(got, want) {
				t.Errorf("%s, cut after %d: %d of %d bytes, %v", name, cut, len(got), size, err)
			}
			if n := asked.Load(); name == "small" && cut == 0 && n != 1 {
				t.Errorf("%d requests", n)
			}
		}
	}
	if c := s.Counts(); c.Stats > 0 || c.Reads != 4 {
		t.Errorf("%+v", c)
	}
}

// A service that contradicts itself is an error, and no panic.
func TestReadWholeOfNonsense(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Range", "bytes 0-9/5")
		w.WriteHeader(http.StatusPartialContent)
		fmt.Fprint(w, "0123456789")
	}))
	t.Cleanup(server.Close)
	s, err := object.OpenWith("s3://b/store", map[string]string{
		"aws_endpoint": server.URL, "aws_access_key_id": "a", "aws_secret_access_key": "b",
	})
	must(t, err)
	if _, _, err := object.ReadWhole(t.Context(), s, "x", 10); err == nil {
		t.Error("10 bytes of 5")
	}
}

// A service that knows only the first version of ListObjects gives no token of the next page.
func TestPageWithoutNext(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		of := "ListBucketResult"
		if r.URL.Query().Has("uploads") {
			of = "ListMultipartUploadsResult"
		}
		fmt.Fprintf(w, "<%s><IsTruncated>true</IsTruncated></%[1]s>", of)
	}))
	t.Cleanup(server.Close)
	options := map[string]string{"aws_endpoint": server.URL, "aws_access_key_id": "a", "aws_secret_access_key": "b"}
	s, err := object.OpenWith("s3://"+bucket+"/old", options)
	must(t, err)
	b, err := object.OpenBucket("s3", bucket, options)
	must(t, err)
	for what, list := range map[string]func() error{
		"objects": func() (err error) {
			for _, err = range s.List(t.Context(), "", "") {
			}
			return err
		},
		"names": func() (err error) {
			for _, err = range b.Names(t.Context(), "") {
			}
			return err
		},
		"uploads": func() error {
			u, _ := object.As[object.Unfinished](s)
			_, err := u.Temporary(t.Context())
			return err
		},
	} {
		asked.Store(0)
		err := list()
		if err == nil || !strings.Contains(err.Error(), "where the next page begins") || asked.Load() != 1 {
			t.Errorf("%s: %v, after %d requests", what, err, asked.Load())
		}
	}
}

// An endpoint for S3 alone, of a profile, is one: no region, no bucket in the host's name, and TLS.
func TestEndpointOfAProfile(t *testing.T) {
	server := objectserver.StartS3(t, bucket)
	config := filepath.Join(t.TempDir(), "config")
	for _, c := range []struct{ endpoint, refused string }{
		{server.Endpoint, ""}, {"http://192.0.2.1:9000", "aws_allow_http"},
	} {
		must(t, os.WriteFile(config, fmt.Appendf(nil, "[profile here]\nservices = local\n[services local]\ns3 =\n"+
			"  endpoint_url = %s\n", c.endpoint), 0o600))
		for name, value := range map[string]string{
			"AWS_CONFIG_FILE": config, "AWS_PROFILE": "here", "AWS_REGION": "", "AWS_DEFAULT_REGION": "",
			"AWS_ENDPOINT_URL_S3": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT": "",
		} {
			t.Setenv(name, value)
		}
		options := server.Options()
		delete(options, "aws_endpoint")
		delete(options, "aws_region")
		s, err := object.OpenWith("s3://"+bucket+"/profile", options)
		switch {
		case c.refused != "":
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v", c.endpoint, err)
			}
		case err != nil:
			t.Error(err)
		default:
			must(t, s.PutIfAbsent(t.Context(), "a", []byte("x")))
		}
	}
}
