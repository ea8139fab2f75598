package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/diskcache"
)

// warm is the second epoch and later ones from the cache, beside the same files on the local disk without one: scans of
// a share of the features, the table opened before, and reads of all bytes of segments. Requests take 10 ms.
type warm struct {
	Seconds      []float64 `json:"seconds"`
	Local        []float64 `json:"seconds_local_disk"`
	Ratio        float64   `json:"ratio"` // of the speeds
	CPU          []float64 `json:"cpu_seconds"`
	LocalCPU     []float64 `json:"cpu_seconds_local_disk"`
	CPURatio     float64   `json:"cpu_ratio"` // local over warm: what Ratio is where nobody else has the processor
	RawRate      []float64 `json:"gb_per_second"`
	LocalRawRate []float64 `json:"gb_per_second_local_disk"`
	RawRatio     float64   `json:"raw_ratio"`
	Data         int64     `json:"data_requests"`
}

func (f *flags) warm(ctx context.Context, s *service, t *table, cacheDir string) (out warm, err error) {
	s.delay.Store(int64(10 * time.Millisecond))
	s.proxy.Break(s.slow)
	defer s.proxy.Break(nil)
	cache, err := diskcache.Open(cacheDir, 2<<30)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, cache.Close()) }()
	counted := &segmentReads{Store: t.proxied}
	stores := []object.Store{diskcache.NewStore(counted, cache), t.local}
	var layouts []*reader.Layout
	for _, blobs := range stores {
		e := versus.StoreEngine{Blobs: blobs, Features: t.features, BatchSize: f.BatchSize, Bare: true}
		layout, done, err := e.Layout(ctx)
		if err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, done()) }()
		layouts = append(layouts, layout)
	}
	scans, rates := []*[]float64{&out.Seconds, &out.Local}, []*[]float64{&out.RawRate, &out.LocalRawRate}
	cpus := []*[]float64{&out.CPU, &out.LocalCPU}
	order := []int{0, 1}
	for round := range f.Rounds + 1 {
		for _, i := range order {
			seconds, cpu, err := f.scan(ctx, layouts[i])
			if err != nil {
				return out, err
			}
			rate, err := f.readAll(ctx, stores[i])
			if err != nil {
				return out, err
			}
			if round > 0 {
				*scans[i], *rates[i] = append(*scans[i], seconds), append(*rates[i], rate)
				*cpus[i] = append(*cpus[i], cpu)
			}
		}
		if round == 0 { // it filled the cache
			counted.n.Store(0)
		}
		slices.Reverse(order)
	}
	out.Data = counted.n.Load()
	out.Ratio = program.Median(out.Local) / program.Median(out.Seconds)
	out.CPURatio = program.Median(out.LocalCPU) / program.Median(out.CPU)
	out.RawRatio = program.Median(out.RawRate) / program.Median(out.LocalRawRate)
	return out, nil
}

// scan reads epochs for half a second at least, and returns the seconds of one, and the CPU seconds.
func (f *flags) scan(ctx context.Context, l *reader.Layout) (seconds, cpu float64, err error) {
	begin, before, times := time.Now(), program.CPUSeconds(), 0
	for ; times == 0 || time.Since(begin) < 500*time.Millisecond; times++ {
		sc, err := l.Open(reader.Options{Workers: f.Threads, Reuse: true, RoundIntegers: true})
		if err != nil {
			return 0, 0, err
		}
		if err := errors.Join(versus.Drain(ctx, sc, nil), sc.Close()); err != nil {
			return 0, 0, err
		}
	}
	n := float64(times)
	return time.Since(begin).Seconds() / n, (program.CPUSeconds() - before) / n, nil
}

// readAll reads all objects of segments, for half a second at least, and returns GB/s.
func (f *flags) readAll(ctx context.Context, s object.Store) (float64, error) {
	const part = 1 << 20
	type piece struct {
		name    string
		at, end int64
	}
	var pieces []piece
	var total int64
	for info, err := range s.List(ctx, "", "") {
		if err != nil {
			return 0, err
		}
		for at := int64(0); names.IsSegmentObject(info.Name) && at < info.Size; at += part {
			pieces = append(pieces, piece{info.Name, at, min(at+part, info.Size)})
			total += pieces[len(pieces)-1].end - at
		}
	}
	begin, times := time.Now(), 0
	for ; times == 0 || time.Since(begin) < 500*time.Millisecond; times++ {
		err := object.Parallel(ctx, f.Threads, len(pieces), func(ctx context.Context, i int) error {
			p := pieces[i]
			return s.ReadAt(ctx, p.name, make([]byte, p.end-p.at), p.at)
		})
		if err != nil {
			return 0, err
		}
	}
	return float64(total) * float64(times) / 1e9 / time.Since(begin).Seconds(), nil
}

// quota is how much of the disk a cache takes that is smaller than what 8 processes read through it.
type quota struct {
	Processes int     `json:"processes"`
	Bytes     int64   `json:"quota_bytes"`
	Most      float64 `json:"most"` // of the quota that the directory's files took, of all samples
	End       float64 `json:"end"`
	Samples   int     `json:"samples"`
	Misses    uint64  `json:"blocks_fetched"`
}

var quotaObject = names.ID{1}.ObjectName(names.PackObject, 0) // only objects of segments are cached

const (
	readerSeconds = "DSISTORE_BUCKETS_READER" // what makes this program one of the 8 processes, and for how long
	processes     = 8
)

// Each of the processes is this program again, or its test.
func init() {
	text, ok := os.LookupEnv(readerSeconds)
	if !ok {
		return
	}
	if err := readRandom(context.Background(), text); err != nil {
		fmt.Fprintln(os.Stderr, "reader:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// readRandom reads random blocks of an object, by the store and the cache that the environment says.
func readRandom(ctx context.Context, seconds string) error {
	limit, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		return err
	}
	store, err := diskcache.OpenStore("s3://"+bucket+"/quota", nil)
	if err != nil {
		return err
	}
	info, err := store.Stat(ctx, quotaObject)
	if err != nil {
		return err
	}
	p := make([]byte, 256<<10)
	for begin := time.Now(); time.Since(begin).Seconds() < limit; {
		if err := store.ReadAt(ctx, quotaObject, p, rand.Int64N(info.Size-int64(len(p)))); err != nil {
			return err
		}
	}
	return nil
}

func (f *flags) quota(ctx context.Context, s *service, dir string) (out quota, err error) {
	out.Processes, out.Bytes = processes, f.Quota
	store, err := s.open("quota", false)
	if err != nil {
		return out, err
	}
	if err := put(ctx, store, quotaObject, int(2*f.Quota)); err != nil {
		return out, err
	}
	cache, err := diskcache.Open(dir, f.Quota)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, cache.Close()) }()
	environment := append(os.Environ(), fmt.Sprintf("%s=%g", readerSeconds, f.Seconds), "DSISTORE_CACHE="+dir,
		fmt.Sprintf("DSISTORE_CACHE_SIZE=%d", f.Quota))
	for name, value := range s.server.Environment() {
		environment = append(environment, name+"="+value)
	}
	ended := make(chan error, processes)
	for range processes {
		c := exec.CommandContext(ctx, os.Args[0])
		c.Env, c.Stderr = environment, os.Stderr
		if err := c.Start(); err != nil {
			return out, err
		}
		go func() { ended <- c.Wait() }()
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for left := processes; left > 0; {
		select {
		case e := <-ended:
			err, left = errors.Join(err, e), left-1
		case <-tick.C:
			used, failed := onDisk(dir)
			if failed != nil {
				return out, failed
			}
			out.Samples++
			out.Most = max(out.Most, float64(used)/float64(f.Quota))
		}
	}
	if err != nil {
		return out, err
	}
	used, err := onDisk(dir)
	if err != nil {
		return out, err
	}
	out.End = float64(used) / float64(f.Quota)
	out.Most = max(out.Most, out.End)
	st, err := cache.Stat()
	out.Misses = st.Misses
	return out, err
}

// onDisk returns the bytes that the files of a directory take of the disk.
func onDisk(dir string) (n int64, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		var st syscall.Stat_t
		if err := syscall.Stat(filepath.Join(dir, f.Name()), &st); err != nil {
			return 0, err
		}
		n += 512 * st.Blocks
	}
	return n, nil
}
