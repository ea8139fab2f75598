// Command buckets measures tables in an object store: a real server of S3 on this machine (versitygw), by way of a
// proxy that makes requests slow, stalls some and refuses others.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/diskcache"
	_ "github.com/dsistore/dsistore/storage/object/s3"
	"github.com/dsistore/dsistore/tools/ingest"
)

const bucket = "tables"

type flags struct {
	versus.TableFlags
	Share     float64         `help:"Share of the features to read." default:"0.1"`
	Threads   int             `help:"Workers that decode." default:"2"`
	BatchSize int             `help:"Rows of a batch." default:"4096"`
	Latency   []time.Duration `help:"What every request of an epoch takes longer." default:"0s,10ms,50ms"`
	Rounds    int             `help:"Rounds that count." default:"5"`
	Seconds   float64         `help:"How long the throughput is measured." default:"5"`
	Reads     int             `help:"Reads of the measure of stalls." default:"4000"`
	Quota     int64           `help:"Bytes of the cache of the measure of its quota; what is read through it is twice as large." default:"268435456"`
	Burst     float64         `help:"How many seconds requests are refused, and before that are not." default:"5"`
	Writers   int             `help:"How many writers commit at the same time." default:"8"`
	Commits   int             `help:"How often each of them does." default:"20"`
	Results   string          `help:"Directory for the results as JSON; empty: none." default:"bench/results"`
}

// A result is what the program prints and writes.
type result struct {
	Throughput throughput `json:"throughput"`
	Stalls     stalls     `json:"stalls"`
	Burst      burst      `json:"burst"`
	Commits    commits    `json:"commits"`
	Epochs     []epoch    `json:"epochs"`
	Warm       warm       `json:"warm_cache"`
	Quota      quota      `json:"quota"`
}

func main() {
	var f flags
	program.Main(&f, "buckets", "Measure tables in an object store.", func(ctx context.Context) error {
		r, err := f.run(ctx)
		if err != nil {
			return err
		}
		r.print()
		if f.Results == "" {
			return nil
		}
		path, err := program.Write(f.Results, "buckets", r)
		if err == nil {
			fmt.Fprintln(os.Stderr, "results:", path)
		}
		return err
	})
}

// A service is a server with a proxy before it.
type service struct {
	server *objectserver.S3
	proxy  *objectserver.Proxy
	delay  atomic.Int64 // of every request, nanoseconds
}

// open returns the store at a prefix of the bucket, by way of the proxy or not.
func (s *service) open(prefix string, proxied bool) (object.Store, error) {
	options := s.server.Options()
	if proxied {
		options["aws_endpoint"] = s.proxy.URL
	}
	return object.OpenWith("s3://"+bucket+"/"+prefix, options)
}

// slow is a rule that makes every request as slow as delay says.
func (s *service) slow(*http.Request) objectserver.Fault {
	return objectserver.Fault{Delay: time.Duration(s.delay.Load())}
}

func (f *flags) run(ctx context.Context) (result, error) {
	var r result
	dir, err := os.MkdirTemp("", "dsistore-buckets-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	server, stop, err := objectserver.RunS3(ctx, filepath.Join(dir, "server"), bucket)
	if err != nil {
		return r, err
	}
	defer stop()
	proxy, stopProxy, err := objectserver.RunProxy(server.Endpoint)
	if err != nil {
		return r, err
	}
	defer stopProxy()
	s := &service{server: server, proxy: proxy}
	if r.Throughput, err = f.throughput(ctx, s); err != nil {
		return r, fmt.Errorf("throughput: %w", err)
	}
	if r.Stalls, err = f.stalls(ctx, s); err != nil {
		return r, fmt.Errorf("stalls: %w", err)
	}
	if r.Burst, err = f.burst(ctx, s); err != nil {
		return r, fmt.Errorf("burst: %w", err)
	}
	if r.Commits, err = f.commits(ctx, s); err != nil {
		return r, fmt.Errorf("commits: %w", err)
	}
	t, err := f.table(ctx, s)
	if err != nil {
		return r, err
	}
	if r.Epochs, err = f.epochs(ctx, s, t, filepath.Join(dir, "cache")); err != nil {
		return r, fmt.Errorf("epochs: %w", err)
	}
	if r.Warm, err = f.warm(ctx, s, t, filepath.Join(dir, "cache")); err != nil {
		return r, fmt.Errorf("warm cache: %w", err)
	}
	if r.Quota, err = f.quota(ctx, s, filepath.Join(dir, "small-cache")); err != nil {
		return r, fmt.Errorf("quota: %w", err)
	}
	return r, nil
}

// A table is the one that epochs read: on the local disk, and in the bucket by way of the proxy.
type table struct {
	local, proxied object.Store
	features       []workload.Feature
}

func (f *flags) table(ctx context.Context, s *service) (*table, error) {
	truth, err := workload.NewTruth(f.Options(workload.Clustered))
	if err != nil {
		return nil, err
	}
	dir, _, err := f.Store(ctx, workload.Clustered, true, ingest.Options{})
	if err != nil {
		return nil, err
	}
	t := &table{}
	if t.features, err = versus.Project(truth, f.Share, f.Seed); err != nil {
		return nil, err
	}
	if t.local, err = object.NewLocal(dir); err != nil {
		return nil, err
	}
	there, err := s.open("table", false)
	if err != nil {
		return nil, err
	}
	if err := copyAll(ctx, t.local, there); err != nil {
		return nil, err
	}
	t.proxied, err = s.open("table", true)
	return t, err
}

// put makes an object of n random bytes.
func put(ctx context.Context, s object.Store, name string, n int) error {
	w, err := s.Create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	p := make([]byte, n)
	if _, err := rand.Read(p); err != nil {
		return err
	}
	if _, err := w.Write(p); err != nil {
		return err
	}
	return w.Commit(ctx)
}

// throughput is what one process reads by ranges of 8 MiB, 16 at once.
type throughput struct {
	GBPerSecond     float64 `json:"gb_per_second"`
	CPUSecondsPerGB float64 `json:"cpu_seconds_per_gb"` // of this process
	Bytes           int64   `json:"bytes"`
}

func (f *flags) throughput(ctx context.Context, s *service) (throughput, error) {
	const size, part, atOnce = 256 << 20, 8 << 20, 16
	store, err := s.open("throughput", false)
	if err != nil {
		return throughput{}, err
	}
	if err := put(ctx, store, "large", size); err != nil {
		return throughput{}, err
	}
	var bytes, next atomic.Int64
	begin, cpu := time.Now(), program.CPUSeconds()
	err = object.Parallel(ctx, atOnce, atOnce, func(ctx context.Context, _ int) error {
		for p := make([]byte, part); time.Since(begin).Seconds() < f.Seconds; {
			if err := store.ReadAt(ctx, "large", p, next.Add(1)*part%size); err != nil {
				return err
			}
			bytes.Add(part)
		}
		return nil
	})
	gb := float64(bytes.Load()) / 1e9
	return throughput{gb / time.Since(begin).Seconds(), (program.CPUSeconds() - cpu) / gb, bytes.Load()}, err
}

// stalls is what it costs that one request in 100 takes 2 s longer. All take 10 ms longer.
type stalls struct {
	Reads   int       `json:"reads"`
	Without []float64 `json:"seconds_without"`
	With    []float64 `json:"seconds_with"`
	Ratio   float64   `json:"ratio"`    // of medians
	Sent    float64   `json:"requests"` // for each read
}

func (f *flags) stalls(ctx context.Context, s *service) (out stalls, err error) {
	const size, part, atOnce = 32 << 20, 64 << 10, 16
	store, err := s.open("stalls", true)
	if err != nil {
		return out, err
	}
	if err := put(ctx, store, "large", size); err != nil {
		return out, err
	}
	var sent atomic.Int64
	defer s.proxy.Break(nil)
	measure := func(stall bool) (float64, error) {
		s.proxy.Break(func(*http.Request) objectserver.Fault {
			fault := objectserver.Fault{Delay: 10 * time.Millisecond}
			if n := sent.Add(1); stall && n%100 == 0 {
				fault.Delay += 2 * time.Second
			}
			return fault
		})
		begin := time.Now()
		err := object.Parallel(ctx, atOnce, f.Reads, func(ctx context.Context, i int) error {
			return store.ReadAt(ctx, "large", make([]byte, part), int64(i)*part%size)
		})
		return time.Since(begin).Seconds(), err
	}
	for round := range f.Rounds + 1 {
		for _, stall := range []bool{false, true} {
			before := sent.Load()
			seconds, err := measure(stall)
			if err != nil {
				return out, err
			}
			switch {
			case round == 0: // how long requests take is not known before
			case stall:
				out.With = append(out.With, seconds)
				out.Sent = float64(sent.Load()-before) / float64(f.Reads)
			default:
				out.Without = append(out.Without, seconds)
			}
		}
	}
	out.Reads = f.Reads
	out.Ratio = program.Median(out.With) / program.Median(out.Without)
	return out, nil
}

// burst is what becomes of the rate after all requests were refused with 503 for some seconds. 32 goroutines read.
type burst struct {
	Before   float64 `json:"reads_per_second_before"`
	Recovery float64 `json:"seconds_to_90_percent"` // after the burst; -1: not within four times as long
	Refused  int64   `json:"refused"`
}

func (f *flags) burst(ctx context.Context, s *service) (burst, error) {
	const part, atOnce = 64 << 10, 32
	out := burst{Recovery: -1}
	store, err := s.open("stalls", true)
	if err != nil {
		return out, err
	}
	begin := time.Now()
	var refused atomic.Int64
	defer s.proxy.Break(nil)
	s.proxy.Break(func(*http.Request) objectserver.Fault {
		if d := time.Since(begin).Seconds(); d > f.Burst && d < 2*f.Burst {
			refused.Add(1)
			return objectserver.Fault{Status: http.StatusServiceUnavailable, Code: "SlowDown"}
		}
		return objectserver.Fault{Delay: 20 * time.Millisecond}
	})
	length := int(f.Burst * 10) // in tenths of a second
	slots := 6 * length
	done := make([]atomic.Int64, slots)
	err = object.Parallel(ctx, atOnce, atOnce, func(ctx context.Context, i int) error {
		p := make([]byte, part)
		for n := i; ; n++ {
			if err := store.ReadAt(ctx, "large", p, int64(n%256)*part); err != nil {
				return err
			}
			at := int(time.Since(begin).Seconds() * 10)
			if at >= slots {
				return nil
			}
			done[at].Add(1)
		}
	})
	rate := func(from, to int) (n float64) {
		for i := from; i < to; i++ {
			n += float64(done[i].Load())
		}
		return n / float64(to-from) * 10
	}
	out.Before, out.Refused = rate(length/2, length), refused.Load()
	for at := 2 * length; at+10 <= slots; at++ {
		if rate(at, at+10) >= 0.9*out.Before {
			out.Recovery = float64(at-2*length) / 10
			break
		}
	}
	return out, err
}

// An epoch is one of a share of the features into a KJT, opening included, from a server whose every request takes some
// time longer: without a cache, and twice with one.
type epoch struct {
	Latency  float64   `json:"latency_ms"`
	Rows     uint64    `json:"rows"`
	Requests int64     `json:"requests"` // all, of one epoch
	Bytes    int64     `json:"bytes"`
	Least    float64   `json:"requests_of_8_mib"` // bytes / 8 MiB
	Without  []float64 `json:"seconds_without_cache"`
	First    []float64 `json:"seconds_cold_cache"`
	Again    []float64 `json:"seconds_warm_cache"`
	Data     int64     `json:"data_requests_warm_cache"` // for segments' objects
	Local    []float64 `json:"seconds_local_disk"`
}

func (f *flags) epochs(ctx context.Context, s *service, t *table, cacheDir string) (out []epoch, err error) {
	s.proxy.Break(s.slow)
	defer s.proxy.Break(nil)
	local, proxied := t.local, t.proxied
	read := func(blobs object.Store) (float64, uint64, error) {
		begin := time.Now()
		e := versus.StoreEngine{Blobs: blobs, Features: t.features, BatchSize: f.BatchSize, Bare: true}
		sc, closeAll, err := e.Open(ctx, f.Threads)
		if err != nil {
			return 0, 0, err
		}
		err = versus.Drain(ctx, sc, func(*reader.Batch) error { return nil })
		rows := sc.Stats().Rows
		return time.Since(begin).Seconds(), rows, errors.Join(err, closeAll())
	}
	for _, latency := range f.Latency {
		s.delay.Store(int64(latency))
		e := epoch{Latency: float64(latency) / 1e6}
		for range f.Rounds {
			counted := object.NewCounted(proxied)
			seconds, rows, err := read(counted)
			if err != nil {
				return nil, err
			}
			c := counted.Counts()
			e.Rows, e.Requests, e.Bytes = rows, c.Requests(), c.BytesRead
			e.Without = append(e.Without, seconds)
			if seconds, _, err = read(local); err != nil {
				return nil, err
			}
			e.Local = append(e.Local, seconds)

			cache, err := diskcache.Open(cacheDir, 2<<30)
			if err != nil {
				return nil, err
			}
			if err := errors.Join(cache.Clear(), f.cached(proxied, cache, read, &e)); err != nil {
				return nil, err
			}
			if err := cache.Close(); err != nil {
				return nil, err
			}
		}
		e.Least = float64(e.Bytes) / (8 << 20)
		out = append(out, e)
	}
	return out, nil
}

// cached reads two epochs through a cache that is empty.
func (f *flags) cached(proxied object.Store, cache *diskcache.Cache,
	read func(object.Store) (float64, uint64, error), e *epoch) error {
	counted := &segmentReads{Store: proxied}
	store := diskcache.NewStore(counted, cache)
	first, _, err := read(store)
	if err != nil {
		return err
	}
	counted.n.Store(0)
	again, _, err := read(store)
	e.First, e.Again, e.Data = append(e.First, first), append(e.Again, again), counted.n.Load()
	return err
}

// segmentReads counts reads that the cache passes on in blocks.
type segmentReads struct {
	object.Store
	n atomic.Int64
}

func (s *segmentReads) Unwrap() object.Store { return s.Store }

func (s *segmentReads) ReadUpTo(ctx context.Context, name string, p []byte, off int64) (int, error) {
	s.n.Add(1)
	return object.ReadUpTo(ctx, s.Store, name, p, off)
}

// copyAll makes every object of a store in another.
func copyAll(ctx context.Context, from, to object.Store) error {
	for info, err := range from.List(ctx, "", "") {
		if err != nil {
			return err
		}
		p := make([]byte, info.Size)
		if err := from.ReadAt(ctx, info.Name, p, 0); err != nil {
			return err
		}
		if err := to.PutIfAbsent(ctx, info.Name, p); err != nil {
			return err
		}
	}
	return nil
}

func (r result) print() {
	t := r.Throughput
	fmt.Printf("throughput  %.2f GB/s, %.2f CPU seconds a GB\n", t.GBPerSecond, t.CPUSecondsPerGB)
	s := r.Stalls
	fmt.Printf("stalls      1 %% of the requests for 2 s: %.2f times the time (%.2f s, %.2f s), %.3f requests a read\n",
		s.Ratio, program.Median(s.With), program.Median(s.Without), s.Sent)
	b := r.Burst
	fmt.Printf("burst       %.0f reads/s before; 90 %% of it %.1f s after the last 503 (%d refused)\n", b.Before,
		b.Recovery, b.Refused)
	c := r.Commits
	fmt.Printf("commits     %d writers, 50 ms a request: %.1f commits/s, %.2f puts a commit, the slowest %.1f s\n",
		c.Writers, c.Rate, c.Puts, c.Slowest)
	for _, e := range r.Epochs {
		fmt.Printf("epoch       %g ms a request: %d requests (8 MiB each: %.1f), %.1f MB; %.3f s; ", e.Latency,
			e.Requests, e.Least, float64(e.Bytes)/1e6, program.Median(e.Without))
		fmt.Printf("cold cache %.3f s, warm %.3f s and %d data requests; local disk %.3f s\n", program.Median(e.First),
			program.Median(e.Again), e.Data, program.Median(e.Local))
	}
	w, q := r.Warm, r.Quota
	fmt.Printf("warm cache  %.2f of the local disk's speed, %.2f by CPU seconds, opened before (%.4f s, %.4f s); ",
		w.Ratio, w.CPURatio, program.Median(w.Seconds), program.Median(w.Local))
	fmt.Printf("in pieces of 1 MiB %.2f (%.2f GB/s, %.2f GB/s)\n", w.RawRatio, program.Median(w.RawRate),
		program.Median(w.LocalRawRate))
	fmt.Printf("quota       %d processes, %.1f MB: at most %.4f of it on the disk, at the end %.4f, in %d samples; %d "+
		"blocks fetched\n", q.Processes, float64(q.Bytes)/1e6, q.Most, q.End, q.Samples, q.Misses)
}
