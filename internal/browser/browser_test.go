package browser

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T) (context.Context, *Browser, *Page) {
	t.Helper()
	path, err := Find()
	if err != nil {
		t.Skipf("NOT TESTED IN A BROWSER: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	b, err := Start(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(b.profile); !os.IsNotExist(err) {
			t.Errorf("it leaves %s behind", b.profile)
		}
	})
	p, err := b.NewPage(ctx, 400, 300)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, b, p
}

// TestPage: what a page does is done, seen and kept; a browser that has ended says so to the caller that waits.
func TestPage(t *testing.T) {
	ctx, b, p := start(t)
	file := filepath.Join(t.TempDir(), "a.html")
	const text = `<body style="margin:0"><button style="width:100px;height:50px">a</button><input><script>
		console.warn("careful", 7); document.querySelector("button").onclick = () => { document.title = "clicked" };
		addEventListener("keydown", (e) => { document.title = e.key });
		fetch("http://192.0.2.1/x").catch(() => {}); setTimeout(() => { throw new Error("thrown") });</script>`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	title := func(want string) {
		t.Helper()
		var got string
		if must(p.Eval(ctx, "document.title", &got)); got != want {
			t.Errorf("title %q, want %q", got, want)
		}
	}
	must(p.Open(ctx, "file://"+file))
	must(p.Click(ctx, 50, 25))
	title("clicked")
	must(p.Key(ctx, "ArrowDown"))
	title("ArrowDown")
	must(p.Eval(ctx, "document.querySelector('input').focus()", nil))
	must(p.Type(ctx, "häß"))
	var typed string
	if must(p.Eval(ctx, "Promise.resolve(document.querySelector('input').value)", &typed)); typed != "häß" {
		t.Errorf("typed %q", typed)
	}
	must(p.WaitForFrame(ctx))
	image, err := p.Screenshot(ctx, false)
	if err != nil || !strings.HasPrefix(string(image), "\x89PNG") {
		t.Errorf("screenshot: %.8q, %v", image, err)
	}
	all := strings.Join(p.Messages(), "\n")
	for _, want := range []string{`warning: "careful" 7`, "Error: thrown"} {
		if !strings.Contains(all, want) {
			t.Errorf("messages have no %q:\n%s", want, all)
		}
	}
	if !slices.Contains(p.Requests(), "http://192.0.2.1/x") {
		t.Errorf("requests %q", p.Requests())
	}

	if err := p.Eval(ctx, "nothing.there", nil); err == nil || !strings.Contains(err.Error(), "ReferenceError") {
		t.Errorf("an exception is %v", err)
	}
	if err := p.Call(ctx, "No.method", nil, nil); err == nil || !strings.Contains(err.Error(), "No.method") {
		t.Errorf("an unknown method is %v", err)
	}
	if err := p.Key(ctx, "Any"); err == nil || !strings.Contains(err.Error(), "ArrowDown") {
		t.Errorf("an unknown key is %v", err)
	}
	if err := p.Open(ctx, "file:///no/such/file"); err == nil {
		t.Error("no error from a page that is not there")
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := p.Eval(short, "new Promise(() => {})", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for ever is %v", err)
	}

	waits := make(chan error)
	go func() { waits <- p.Eval(ctx, "new Promise(() => {})", nil) }()
	must(b.cmd.Process.Kill())
	if err := <-waits; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a browser that was killed: %v", err)
	}
	if err := p.Eval(ctx, "1", nil); err == nil {
		t.Error("no error from a browser that was killed")
	}
}

// TestNoNames: no name is resolved, not even that of this machine.
func TestNoNames(t *testing.T) {
	ctx, _, p := start(t)
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	err := p.Open(ctx, strings.Replace(server.URL, "127.0.0.1", "localhost", 1))
	if err == nil || asked {
		t.Errorf("it was asked: %v, %v", asked, err)
	}
}

func TestFind(t *testing.T) {
	t.Setenv(Variable, "none")
	if _, err := Find(); !errors.Is(err, ErrNone) {
		t.Errorf("none is %v", err)
	}
	t.Setenv(Variable, "")
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Chdir(dir)
	if _, err := Find(); !errors.Is(err, ErrNone) {
		t.Errorf("nothing installed is %v", err)
	}
	for _, path := range []string{"go.mod", "out/browser-left-out", "out/browser/chromium", "chromium"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "")
	write("out/browser-left-out", "no npm\n")
	if _, err := Find(); err == nil || !strings.Contains(err.Error(), "no npm") {
		t.Errorf("left out is %v", err)
	}
	write("chromium", "")
	if path, err := Find(); err != nil || path != filepath.Join(dir, "chromium") {
		t.Errorf("in PATH: %q, %v", path, err)
	}
	write("out/browser/chromium", "")
	deep := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(deep, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Chdir(deep)
	if path, err := Find(); err != nil || !strings.HasSuffix(path, filepath.Join("out", "browser", "chromium")) {
		t.Errorf("installed: %q, %v", path, err)
	}
}
