package engine

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/ingest/source"
)

// A job is work that goes on in the background while Python polls it.
type job struct {
	cancel context.CancelFunc
	done   chan struct{} // closed once report and err are set
	report any
	err    error

	mu       sync.Mutex
	progress ingest.Progress // guarded by mu
}

// ingestParams are the parameters of an ingest: those of `dsi ingest`.
type ingestParams struct {
	URI          string   `json:"uri"`
	Table        string   `json:"table"`
	Paths        []string `json:"paths"`
	Format       string   `json:"format,omitempty"`
	Mapping      string   `json:"mapping,omitempty"`
	DDL          string   `json:"ddl,omitempty"`
	SessionKey   string   `json:"session_key,omitempty"`
	TimeKey      string   `json:"time_key,omitempty"`
	PartitionBy  string   `json:"partition_by,omitempty"`
	Memory       int64    `json:"memory,omitempty"`
	Overwrite    bool     `json:"overwrite,omitempty"`
	OnBadRow     string   `json:"on_bad_row,omitempty"`
	BadRowReport string   `json:"bad_row_report,omitempty"`
	Profile      string   `json:"profile,omitempty"`
}

func (e *Engine) ingest(ctx context.Context, raw json.RawMessage) (any, error) {
	var p ingestParams
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	return e.startIngest(ctx, p, nil)
}

// IngestRecords ingests records, which it takes over; raw are the parameters of an ingest without paths. It returns what
// "ingest" does.
func (e *Engine) IngestRecords(ctx context.Context, raw []byte, records source.RecordReader) []byte {
	var p struct {
		ingestParams
		Resident bool `json:"resident,omitempty"` // the records are in memory whether or not they are read
	}
	if err := params(raw, &p); err != nil {
		records.Release()
		return Failure(err)
	}
	p.Paths, p.Format = []string{"-"}, "arrow"
	in := source.NewRecords(records, p.Resident)
	h, err := e.startIngest(ctx, p.ingestParams, in)
	if err != nil {
		in.Close()
		return Failure(err)
	}
	text, _ := json.Marshal(answer{Result: h})
	return text
}

// startIngest begins an ingest and returns the job's handle. in, unless it is nil, is what "-" reads; the job closes it.
func (e *Engine) startIngest(ctx context.Context, p ingestParams, in *source.Records) (any, error) {
	s, err := e.store(ctx, p.URI)
	if err != nil {
		return nil, err
	}
	opts := ingest.Options{
		Format: p.Format, MappingFile: p.Mapping, DDLFile: p.DDL, SessionKey: p.SessionKey, TimeKey: p.TimeKey,
		PartitionBy: p.PartitionBy, Memory: p.Memory, Overwrite: p.Overwrite, OnBadRow: ingest.BadRow(p.OnBadRow),
		BadRowReport: p.BadRowReport, Profile: p.Profile, Records: in,
	}
	if err := opts.Validate(); err != nil {
		return nil, usageError{err}
	}
	work, cancel := context.WithCancel(context.Background())
	j := &job{cancel: cancel, done: make(chan struct{})}
	opts.Progress = func(p ingest.Progress) {
		j.mu.Lock()
		j.progress = p
		j.mu.Unlock()
	}
	e.mu.Lock()
	h := e.handle()
	e.jobs[h] = j
	e.mu.Unlock()
	go func() {
		defer close(j.done)
		defer cancel()
		report, err := ingest.Run(work, s, p.Table, p.Paths, opts)
		if in != nil {
			in.Close()
		}
		if err != nil && work.Err() != nil {
			err = work.Err()
		}
		j.report, j.err = report, err
	}()
	return jobAnswer(h), nil
}

// jobAnswer is the handle of a job.
type jobAnswer int64

func (a jobAnswer) undo(e *Engine) {
	e.mu.Lock()
	j := e.jobs[int64(a)]
	delete(e.jobs, int64(a))
	e.mu.Unlock()
	if j != nil {
		j.cancel()
		<-j.done
	}
}

// pollAnswer is how far a job is. Done comes once: the job is forgotten then.
type pollAnswer struct {
	Done       bool   `json:"done"`
	Report     any    `json:"report,omitempty"`
	Phase      string `json:"phase,omitempty"`
	Rows       int64  `json:"rows"`
	Bytes      int64  `json:"bytes"`
	TotalBytes int64  `json:"total_bytes"`
}

func (e *Engine) poll(ctx context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		Handle  int64   `json:"handle"`
		Seconds float64 `json:"seconds"` // how long to wait
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	e.mu.Lock()
	j := e.jobs[p.Handle]
	e.mu.Unlock()
	if j == nil {
		return nil, errNoHandle
	}
	timer := time.NewTimer(time.Duration(p.Seconds * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-j.done:
		e.mu.Lock()
		delete(e.jobs, p.Handle)
		e.mu.Unlock()
		if j.err != nil {
			return nil, j.err
		}
		return pollAnswer{Done: true, Report: j.report}, nil
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return pollAnswer{
		Phase: string(j.progress.Phase), Rows: j.progress.Rows, Bytes: j.progress.Bytes, TotalBytes: j.progress.TotalBytes,
	}, nil
}

func (e *Engine) cancel(_ context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		Handle int64 `json:"handle"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	e.mu.Lock()
	j := e.jobs[p.Handle]
	e.mu.Unlock()
	if j == nil {
		return nil, errNoHandle
	}
	j.cancel()
	return true, nil
}
