package ui

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/report"
	"github.com/dsistore/dsistore/tools/report/page"
	"github.com/dsistore/dsistore/tools/terminal"
)

// A site answers requests for the page and its figures.
type site struct {
	ctx     context.Context // of the command
	store   *storage.Store
	names   []string // of the tables; none: all
	opts    report.Options
	every   int // seconds between two looks at the store
	key     string
	host    string // that --listen names
	warn    func(text string)
	outside atomic.Bool    // other machines reach it
	looking sync.WaitGroup // at the store

	made map[string]madeTable // the tables of current, by name; for looks, of which one goes on at a time

	mu      sync.Mutex    // guards what follows
	running chan struct{} // closed when the look that goes on has ended; nil: none does
	ended   time.Time     // the last look
	current *report.Report
	version string
	failed  string // what the last look said, if it failed
}

// A madeTable is what was reported of a table at a version.
type madeTable struct {
	version string
	tables  []report.Table // one
}

// patience is how long a request waits for a look at the store. Then it gets the figures that there are.
const patience = 20 * time.Second

// ServeHTTP answers with the page, or with the report if it is newer than the one that was seen.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", "frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	key, path, whole := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case !s.isThisMachine(r.Host) || !sameOrigin(r):
		http.Error(w, "dsi ui answers only requests to the address that it printed, from its own page",
			http.StatusForbidden)
	case subtle.ConstantTimeCompare([]byte(key), []byte(s.key)) != 1:
		http.Error(w, "open the whole address that dsi ui printed: its last part is the key", http.StatusForbidden)
	case r.Method != http.MethodGet:
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
	case !whole: // beside which there is no report
		http.Redirect(w, r, "/"+s.key+"/", http.StatusMovedPermanently)
	case path == "":
		s.servePage(w, r)
	case path == "report":
		s.serveReport(w, r)
	default:
		http.NotFound(w, r)
	}
}

// isThisMachine reports whether the Host of a request is an address of this machine, localhost, or what --listen names.
// Other names are refused: the owner of a name can let it point here, so that a browser takes this server for a part of
// that site.
func (s *site) isThisMachine(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || name != "" && name == s.host || err == nil && (ip.IsLoopback() || s.outside.Load())
}

// sameOrigin reports whether a request comes from a page of the same address, or from no page.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	u, err := url.Parse(origin)
	return origin == "" || err == nil && u.Host == r.Host
}

func (s *site) servePage(w http.ResponseWriter, r *http.Request) {
	current, version, _ := s.newest(r.Context())
	var out bytes.Buffer
	if err := page.WriteLive(&out, current, page.Live{Version: version, Seconds: s.every}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(out.Bytes())
}

func (s *site) serveReport(w http.ResponseWriter, r *http.Request) {
	current, version, failed := s.newest(r.Context())
	if failed != "" {
		w.Header().Set("Dsistore-Failed", url.PathEscape(failed))
	}
	if r.URL.Query().Get("seen") == version {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	text, err := page.Encode(current)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Dsistore-Version", version)
	_, _ = w.Write(text)
}

// newest returns the report and its version, after a look at the store unless the last one was just now; and what kept
// that look from new figures, or "".
func (s *site) newest(ctx context.Context) (current *report.Report, version, failed string) {
	s.mu.Lock()
	if s.running == nil && time.Since(s.ended) > time.Duration(s.every)*time.Second/2 && s.ctx.Err() == nil {
		s.running = make(chan struct{})
		s.looking.Go(func() {
			err := s.look(s.ctx)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.ctx.Err() == nil {
				s.looked(err)
			}
			close(s.running)
			s.running, s.ended = nil, time.Now()
		})
	}
	running := s.running
	s.mu.Unlock()
	if running != nil {
		wait := time.NewTimer(patience)
		defer wait.Stop()
		select {
		case <-running:
		case <-wait.C:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.version, s.failed
}

// look reports anew on the tables that have changed. Only one look goes on at a time. Its error is of the tables that
// the report has as they were, or not at all; where there is no new report the last one stays.
func (s *site) look(ctx context.Context) error {
	names, all := s.names, len(s.names) == 0
	if all {
		var err error
		if names, err = s.store.Tables(ctx); err != nil {
			return err
		}
	}
	r, made, digest := report.New(s.store, s.opts), map[string]madeTable{}, sha256.New()
	var failed error
	for _, name := range names {
		t, err := s.table(ctx, name, s.made[name])
		if err != nil && (!all || ctx.Err() != nil) {
			return err
		}
		failed = errors.Join(failed, err)
		if t.tables != nil {
			made[name] = t
			r.Tables = append(r.Tables, t.tables...)
			fmt.Fprintln(digest, name, t.version)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = made
	if version := hex.EncodeToString(digest.Sum(nil)[:16]); version != s.version {
		s.current, s.version = r, version
	}
	return failed
}

// table reports on a table, unless it is still at the version of the old report. That is also returned with an error,
// unless the table is gone.
func (s *site) table(ctx context.Context, name string, old madeTable) (madeTable, error) {
	version, err := report.Version(ctx, s.store, name) // before the report, which may be newer: then it is made again
	if errors.Is(err, storage.ErrNotFound) {
		return madeTable{}, err
	}
	if err != nil || version == old.version {
		return old, err
	}
	r, err := report.Build(ctx, s.store, []string{name}, s.opts)
	if err != nil {
		return old, err
	}
	return madeTable{version, r.Tables}, nil
}

// looked says how a look ended: it warns of an error, once as long as it stays the same. s.mu is held.
func (s *site) looked(err error) {
	was := s.failed
	if s.failed = ""; err == nil {
		return
	}
	if s.failed = terminal.ErrorText(err); s.failed != was {
		s.warn(s.failed)
	}
}
