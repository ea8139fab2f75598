package read

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/arrowbatch"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/dsi/app"
)

// A scanServer gives the tables of a store to the process that runs a query. Each connection to its socket has one
// request, a scanRequest in JSON on a line, and its answer: a line of JSON; then, of rows, an IPC stream, and an empty
// line if all of it was sent.
type scanServer struct {
	ctx      context.Context
	e        *app.Env
	store    *storage.Store
	command  *SQL
	listener net.Listener
	done     sync.WaitGroup // connections, and the loop that takes them

	mu      sync.Mutex            // guards what follows
	tables  map[string]*scanTable // opened, by the name in the query
	missing map[string]error      // names that no table has
	conns   map[net.Conn]struct{} // open
	failed  error                 // the first failure of a scan
	closed  bool
}

// A scanTable is a table at the snapshot at which all scans of a query read it.
type scanTable struct {
	view *storage.View
	all  *reader.Plan // of all features and partition keys, whose places are those of Columns
}

// A scanRequest asks for a table's schema, or for its rows, or whether Check is a filter of it; or which tables there
// are.
type scanRequest struct {
	List    bool   `json:"list"`
	Table   string `json:"table"`
	Columns *[]int `json:"columns"` // places in the schema; of none only the number of rows is asked for
	Where   string `json:"where"`
	Check   string `json:"check"`
}

// scanAnswer is the first line of an answer.
type scanAnswer struct {
	Error  string   `json:"error,omitempty"`
	Rows   *uint64  `json:"rows,omitempty"` // of the table, where that is known; of no columns
	Tables []string `json:"tables,omitempty"`
}

// scanCells bounds the values of a batch, so that one of many columns is not too large.
const scanCells = 1 << 19

// scanBatch is the rows of a batch at the most.
const scanBatch = 1 << 16

// serveScans listens on a socket until close.
func serveScans(ctx context.Context, socket string, e *app.Env, store *storage.Store, c *SQL) (*scanServer, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	s := &scanServer{ctx: ctx, e: e, store: store, command: c, listener: listener, tables: map[string]*scanTable{},
		missing: map[string]error{}, conns: map[net.Conn]struct{}{}}
	s.done.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			if s.opened(conn) {
				s.done.Go(func() { s.serve(conn) })
			}
		}
	})
	return s, nil
}

// close ends what is being served, and waits for it.
func (s *scanServer) close() {
	s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for conn := range s.conns {
		conn.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
}

// opened remembers a connection, which close will close.
func (s *scanServer) opened(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

// serve answers the request of a connection.
func (s *scanServer) serve(conn net.Conn) {
	defer func() {
		conn.Close()
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
	}()
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	var q scanRequest
	if err != nil || json.Unmarshal(line, &q) != nil {
		return // the process has ended
	}
	w := &scanWriter{w: conn}
	if err := s.answer(w, &q); err != nil && !w.gone {
		s.fail(err)
	}
}

// fail remembers the first failure, which the command returns: what DuckDB makes of a stream that breaks off says less.
func (s *scanServer) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
}

// failure returns why the scans failed; message is what DuckDB says.
func (s *scanServer) failure(message string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	_, name, found := strings.Cut(message, "Table with name ")
	if name, _, _ = strings.Cut(name, " does not exist"); found {
		return s.missing[name]
	}
	return nil
}

// answer answers a request. Its error is for what nobody is to take for the end of a stream.
func (s *scanServer) answer(w *scanWriter, q *scanRequest) error {
	if q.List {
		names, err := s.store.Tables(s.ctx)
		if err != nil {
			return err
		}
		return w.line(scanAnswer{Tables: names})
	}
	t, err := s.table(q.Table)
	if err != nil {
		if !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrName) {
			return err
		}
		return w.line(scanAnswer{Error: err.Error()})
	}
	switch {
	case q.Check != "":
		if _, err := s.plan(t, []int{0}, q.Check); err != nil {
			return w.line(scanAnswer{Error: err.Error()})
		}
		return w.line(scanAnswer{})
	case q.Columns == nil:
		var a scanAnswer
		if t.view.List == "" {
			rows := t.view.Snapshot.Info().LiveRows()
			a.Rows = &rows
		}
		if err := w.line(a); err != nil {
			return err
		}
		return arrowbatch.WriteSchema(w, t.all, arrowbatch.Options{})
	case len(*q.Columns) == 0:
		m, err := reader.Matching(s.ctx, t.view.Snapshot, reader.PlanOptions{Filter: q.Where},
			reader.LayoutOptions{View: t.view, Read: s.command.options()})
		if err != nil {
			return err
		}
		return w.line(scanAnswer{Rows: &m.Rows})
	}
	return s.scan(w, t, *q.Columns, q.Where)
}

// table opens what a name of the query stands for, once.
func (s *scanServer) table(name string) (*scanTable, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tables[name]; t != nil {
		return t, nil
	}
	if err := s.missing[name]; err != nil {
		return nil, err
	}
	view, err := s.command.sqlView(s.ctx, s.store, name)
	if err != nil {
		s.missing[name] = err
		return nil, err
	}
	t := &scanTable{view: view}
	if t.all, err = reader.NewViewPlan(s.ctx, view, reader.PlanOptions{Features: []string{"@all"}}); err != nil {
		return nil, err
	}
	s.tables[name] = t
	return t, nil
}

// plan returns the plan of a scan.
func (s *scanServer) plan(t *scanTable, columns []int, where string) (*reader.Plan, error) {
	opts := reader.PlanOptions{Filter: where, BatchSize: min(max(scanCells/len(columns), 1024), scanBatch)}
	for _, c := range columns {
		if c < 0 || c >= len(t.all.Features) {
			return nil, fmt.Errorf("column %d: there are %d", c, len(t.all.Features))
		}
		opts.Features = append(opts.Features, reader.Literal(t.all.Features[c].Name))
	}
	return reader.NewViewPlan(s.ctx, t.view, opts)
}

// scan sends columns of the rows that a filter selects.
func (s *scanServer) scan(w *scanWriter, t *scanTable, columns []int, where string) error {
	plan, err := s.plan(t, columns, where)
	if err != nil {
		return err
	}
	r, err := reader.OpenView(s.ctx, t.view, plan, s.command.options())
	if err != nil {
		return err
	}
	defer s.e.Metrics.AddReader(r)()
	defer r.Close()
	if err := w.line(scanAnswer{}); err != nil {
		return err
	}
	if _, err := arrowbatch.Write(s.ctx, w, arrowbatch.IPCStream, r, arrowbatch.Options{}); err != nil {
		return err
	}
	_, err = w.Write([]byte("\n"))
	return err
}

// A scanWriter writes an answer. gone says that nobody reads it any more, as when the query needs no more rows.
type scanWriter struct {
	w    io.Writer
	gone bool
}

func (w *scanWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.gone = w.gone || err != nil
	return n, err
}

func (w *scanWriter) line(a scanAnswer) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
