package dsi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/browser"
)

// A uiRun is a dsi ui that runs on a store with the table ads.
type uiRun struct {
	*testing.T
	dir, url string
	stop     func()
	ended    chan int // gets the exit code
}

func startUI(t *testing.T, args ...string) *uiRun {
	u := &uiRun{T: t, dir: t.TempDir(), ended: make(chan int, 1)}
	t.Setenv("DSISTORE_USAGE", "off")
	u.fill()
	ctx, cancel := context.WithCancel(t.Context())
	u.stop = cancel
	out, in := io.Pipe()
	t.Cleanup(func() {
		cancel()
		out.Close()
	})
	go func() {
		var stderr bytes.Buffer
		code := Run(ctx, append([]string{"ui", u.dir + "/store", "--json"}, args...), nil, in, &stderr)
		in.CloseWithError(fmt.Errorf("exit code %d: %s", code, &stderr))
		u.ended <- code
	}()
	var said struct{ URL string }
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		t.Fatal(err)
	}
	u.url = said.URL
	return u
}

// fill makes the store.
func (u *uiRun) fill() {
	u.Helper()
	u.dsi("generate", u.dir+"/dump", "--profile", "narrow", "--rows", "200")
	u.dsi("ingest", u.dir+"/store", "ads", u.dir+"/dump")
}

func (u *uiRun) dsi(args ...string) {
	u.Helper()
	var stderr bytes.Buffer
	if code := Run(u.Context(), args, nil, io.Discard, &stderr); code != 0 {
		u.Fatalf("%v: exit code %d: %s", args, code, &stderr)
	}
}

// ask sends a request, changed by change, and returns the answer's code, text and header.
func (u *uiRun) ask(method, url string, change func(*http.Request)) (int, string, http.Header) {
	u.Helper()
	r, err := http.NewRequestWithContext(u.Context(), method, url, nil)
	if err != nil {
		u.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		u.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		u.Fatal(err)
	}
	return answer.StatusCode, string(text), answer.Header
}

// TestUI: the page and the report are given to who has the key and names this machine, and to nobody else; nothing is
// written; an interrupt ends it well.
func TestUI(t *testing.T) {
	u := startUI(t)
	files := func() (names []string) {
		err := filepath.WalkDir(u.dir, func(path string, _ fs.DirEntry, err error) error {
			names = append(names, path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	before := files()
	if !strings.HasPrefix(u.url, "http://127.0.0.1:") {
		t.Errorf("it serves at %s", u.url)
	}
	host := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.Host = strings.Replace(r.URL.Host, "127.0.0.1", name, 1) }
	}
	origin := func(o string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("Origin", o) } }
	root := u.url[:strings.LastIndexByte(strings.TrimSuffix(u.url, "/"), '/')+1]
	own := strings.TrimSuffix(root, "/")
	for _, c := range []struct {
		what, method, url string
		change            func(*http.Request)
		code              int
		text              string
	}{
		{"the page", "GET", u.url, nil, 200, `data-version="`},
		{"by name", "GET", u.url, host("localhost"), 200, "<title>ads"},
		{"from its own page", "GET", u.url + "report?seen=", origin(own), 200, `"table":"ads"`},
		{"a name that points here", "GET", u.url, host("attacker.example"), 403, "only requests to the address"},
		{"a name that looks like it", "GET", u.url, host("127.0.0.1.example"), 403, "only requests to the address"},
		{"no host", "GET", u.url, func(r *http.Request) { r.Host = ":80" }, 403, "only requests to the address"},
		{"an address of another machine", "GET", u.url, host("192.0.2.1"), 403, "only requests to the address"},
		{"another site", "GET", u.url + "report", origin("http://attacker.example"), 403, "from its own page"},
		{"no site", "GET", u.url + "report", origin("null"), 403, "from its own page"},
		{"another port", "GET", u.url + "report", origin("http://127.0.0.1:1"), 403, "from its own page"},
		{"no key", "GET", root, nil, 403, "the whole address"},
		{"a wrong key", "GET", root + "ABCDEFGHIJKLMNOPQRSTUVWXYZ/", nil, 403, "the whole address"},
		{"a part of the key", "GET", u.url[:len(u.url)-3] + "/report", nil, 403, "the whole address"},
		{"a change", "POST", u.url, nil, 405, "only GET"},
		{"another path", "GET", u.url + "x", nil, 404, "not found"},
	} {
		code, text, header := u.ask(c.method, c.url, c.change)
		if code != c.code || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d, %.200q", c.what, code, text)
		}
		if header.Get("Cache-Control") != "no-store" || header.Get("Access-Control-Allow-Origin") != "" ||
			!strings.Contains(header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s: header %v", c.what, header)
		}
	}
	_, _, header := u.ask("GET", u.url+"report", nil)
	version := header.Get("Dsistore-Version")
	if code, text, _ := u.ask("GET", u.url+"report?seen="+version, nil); code != 204 || text != "" {
		t.Errorf("the same version again: %d, %.100q", code, text)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", strings.TrimSuffix(u.url, "/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if at, err := answer.Location(); err != nil || at.String() != u.url {
		t.Errorf("without the last slash: %d, to %v: what the page asks for is not there", answer.StatusCode, at)
	}
	if after := files(); !slices.Equal(before, after) {
		t.Errorf("it wrote: %q, %q", before, after)
	}
	u.stop()
	select {
	case code := <-u.ended:
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
	if answer, err := http.Get(u.url); err == nil {
		answer.Body.Close()
		t.Error("it still answers")
	}
}

// TestUIRefuses: mistakes are said before anything is served.
func TestUIRefuses(t *testing.T) {
	u := &uiRun{T: t, dir: t.TempDir()}
	u.fill()
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"nowhere"}, 5, "no dsistore store"},
		{[]string{"store", "adz"}, 5, `did you mean "ads"`},
		{[]string{"store", "--listen", "8080"}, 2, "want host:port"},
	} {
		var stderr bytes.Buffer
		args := append([]string{"ui", filepath.Join(u.dir, c.args[0])}, c.args[1:]...)
		if code := Run(t.Context(), args, nil, io.Discard, &stderr); code != c.code ||
			!strings.Contains(stderr.String(), c.text) {
			t.Errorf("%v: exit code %d: %s", args, code, &stderr)
		}
	}
}

// TestUIInBrowser: the page shows what is committed and read while it is open, keeps what was searched and where it is
// scrolled to, lists several tables, and says when the server has ended.
func TestUIInBrowser(t *testing.T) {
	path, err := browser.Find()
	if err != nil {
		t.Skipf("DSI UI IS NOT TESTED IN A BROWSER: %v", err)
	}
	b, err := browser.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	u := startUI(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p, err := b.NewPage(ctx, 1280, 900)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	becomes := func(what, expression, want string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; {
			var got string
			must(p.Eval(ctx, "String("+expression+")", &got))
			if strings.Contains(got, want) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %.300q, want %q", what, got, want)
			}
			must(p.Eval(ctx, `new Promise((done) => setTimeout(() => {
				document.dispatchEvent(new Event("visibilitychange")); // asks now, and not in some seconds
				done();
			}, 100))`, nil))
		}
	}
	text := func(id string) string { return `document.getElementById("` + id + `")?.textContent` }
	must(p.Open(ctx, u.url))
	becomes("live", text("live"), "Live: ")
	becomes("snapshot", text("about"), "snapshot 1 of")
	becomes("tiles alone", `[...document.querySelector(".tiles").childNodes].every((n) => n.nodeType === 1)`, "true")
	becomes("no list of one table", `document.getElementById("all")`, "null")
	must(p.Eval(ctx, `document.querySelector("#features input").focus()`, nil))
	must(p.Type(ctx, "clic"))
	must(p.Eval(ctx, `(window.before = scrollY, window.same = true)`, nil))

	u.dsi("generate", u.dir+"/more", "--profile", "narrow", "--rows", "200", "--seed", "2")
	u.dsi("ingest", u.dir+"/store", "ads", u.dir+"/more")
	becomes("a new snapshot", text("about"), "snapshot 2 of")
	becomes("rows", `document.querySelector(".tiles").textContent`, "Rows400")
	becomes("the search goes on", `document.activeElement.value`, "clic")
	must(p.Type(ctx, "k"))
	becomes("and finds", `document.querySelector("#features .count").textContent`, "1 of ")
	becomes("at its place", `scrollY === before && window.same`, "true")

	t.Setenv("DSISTORE_USAGE", "")
	u.dsi("scan", u.dir+"/store", "ads", "--features", "click", "--job", "a reader")
	becomes("a read", text("jobs"), "a reader")
	becomes("the search goes on", `document.activeElement.value`, "click")

	u.dsi("ingest", u.dir+"/store", "more ads", u.dir+"/more")
	becomes("two tables", text("all"), "more ads")
	must(p.Eval(ctx, `[...document.querySelectorAll("#all a")].find((a) => a.textContent === "more ads").click()`, nil))
	becomes("the other table", text("title"), "more ads")
	becomes("its address", `decodeURIComponent(location.hash)`, "#table=more ads")

	u.stop()
	becomes("the end", text("live"), "not live any more: dsi ui has ended")
	for _, request := range p.Requests() {
		if !strings.HasPrefix(request, u.url) && request != "data:," {
			t.Errorf("the page asks for %s", request)
		}
	}
	for _, m := range p.Messages() {
		if !strings.Contains(m, "ERR_CONNECTION_REFUSED") { // of the end
			t.Errorf("the page complains: %s", m)
		}
	}
}
