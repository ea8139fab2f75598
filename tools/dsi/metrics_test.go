package dsi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsistore/dsistore/tools/terminal"
)

// A scraper is a standard error that scrapes the metrics it is told of, each time that it is written to or asked to.
type scraper struct {
	mu   sync.Mutex
	text bytes.Buffer
	url  string
}

func (s *scraper) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	if m := regexp.MustCompile(`metrics at (http://127\.0\.0\.1:\d+/metrics)`).FindStringSubmatch(
		s.text.String()); m != nil {
		s.url = m[1]
	}
	return len(p), nil
}

func (s *scraper) scrape() (string, error) {
	s.mu.Lock()
	url := s.url
	s.mu.Unlock()
	if url == "" {
		return "", nil
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// held is a standard input that scrapes when the command comes to read it, and then ends: the command is at work
// meanwhile.
type held struct {
	*scraper
	input string
	got   string
	err   error
}

func (h *held) Read(p []byte) (int, error) {
	if h.got == "" && h.err == nil {
		h.got, h.err = h.scrape()
	}
	if h.input == "" {
		return 0, io.EOF
	}
	n := copy(p, h.input)
	h.input = h.input[n:]
	return n, nil
}

// Commands that take long serve their metrics while they run, and not after.
func TestMetricsAddr(t *testing.T) {
	dir := t.TempDir()
	do := func(in io.Reader, err io.Writer, args ...string) int {
		return Run(context.Background(), args, in, io.Discard, err)
	}
	if code := do(nil, io.Discard, "generate", dir+"/dump", "--profile", "narrow", "--rows", "200"); code != 0 {
		t.Fatal(code)
	}
	out := &scraper{}
	if code := do(nil, out, "ingest", dir+"/store", "ads", dir+"/dump", "--metrics-addr", ":0"); code != 0 ||
		out.url == "" {
		t.Fatalf("exit code %d, standard error %q", code, out.text.String())
	}
	if text, err := out.scrape(); err == nil {
		t.Errorf("the command has ended, and serves %q", text)
	}

	// An overlay's keys come on standard input, which scrapes while the command waits for them.
	h := &held{scraper: &scraper{}, input: `{"request_id": 1, "x": 2}` + "\n"}
	do(h, h.scraper, "erase", dir+"/store", "ads", "--keys", "-", "--key", "user_id", "--dry-run", "--metrics-addr",
		"127.0.0.1:0")
	requests := regexp.MustCompile(`(?m)^dsi_reader_requests_total\{code="ok",op="read",store="file"\} [1-9]`)
	if h.err != nil || !requests.MatchString(h.got) {
		t.Errorf("while it reads keys: %v, %.2000s", h.err, h.got)
	}
	for _, args := range []string{"scan STORE ads --features click", "export STORE ads --to OUT.parquet",
		"compact STORE ads", "verify STORE", "gc STORE --dry-run",
		"overlay add STORE ads l --expr", "erase STORE ads --where"} {
		s := &scraper{}
		all := strings.Fields(strings.NewReplacer("STORE", dir+"/store", "OUT", dir+"/out").Replace(args))
		if last := all[len(all)-1]; last == "--expr" {
			all = append(all, "l = click = 1")
		} else if last == "--where" {
			all = append(all, "click = 7")
		}
		if code := do(nil, s, append(all, "--metrics-addr=:0")...); code != 0 || s.url == "" {
			t.Errorf("%s: exit code %d, standard error %q", args, code, s.text.String())
		}
	}
	var text bytes.Buffer
	if code := do(nil, &text, "scan", dir+"/store", "ads", "--features", "click", "--metrics-addr",
		"here"); code != terminal.ExitUsage || !strings.Contains(text.String(), "host:port") {
		t.Errorf("an address that is none: exit code %d, %q", code, text.String())
	}
}
