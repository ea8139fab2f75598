package ingest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/dsistore/dsistore/internal/objectserver"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	_ "github.com/dsistore/dsistore/storage/object/azure"
	_ "github.com/dsistore/dsistore/storage/object/s3"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/klauspost/compress/zstd"
)

// A dumpBucket is a bucket with dumps, behind a proxy that counts requests.
type dumpBucket struct {
	uri           string // scheme://dumps
	put           func(t testing.TB, bucket, key string, data []byte)
	sourceOptions map[string]string
	proxy         *objectserver.Proxy

	mu    sync.Mutex
	asked []string // method, key and range of each request; guarded by mu
	// fault, where it is not nil, says what happens to a request. Guarded by mu.
	fault func(*http.Request) objectserver.Fault
}

// rangeOf returns the bytes that a request asks for; Azure's have a header of their own.
func rangeOf(r *http.Request) string {
	return cmp.Or(r.Header.Get("Range"), r.Header.Get("X-Ms-Range"))
}

func startBucket(t *testing.T) *dumpBucket {
	s := objectserver.StartS3(t, "dumps")
	b := &dumpBucket{uri: "s3://dumps", put: s.Put, sourceOptions: s.Options()}
	return b.through(t, s.Endpoint, "aws_endpoint", "")
}

func startContainer(t *testing.T) *dumpBucket {
	s := objectserver.StartAzure(t, "dumps")
	b := &dumpBucket{uri: "az://dumps", sourceOptions: s.Options()}
	b.put = func(t testing.TB, bucket, key string, data []byte) { s.Put(t, bucket, key, data) }
	return b.through(t, strings.TrimSuffix(s.Endpoint, "/"+s.Account), "azure_storage_endpoint", "/"+s.Account)
}

// through puts the proxy before the service's endpoint, which an option of a name leads to.
func (b *dumpBucket) through(t *testing.T, endpoint, option, path string) *dumpBucket {
	b.proxy = objectserver.StartProxy(t, endpoint)
	b.sourceOptions[option] = b.proxy.URL + path
	b.proxy.Break(func(r *http.Request) objectserver.Fault {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asked = append(b.asked, r.Method+" "+r.URL.Path+" "+rangeOf(r))
		if b.fault != nil {
			return b.fault(r)
		}
		return objectserver.Fault{}
	})
	return b
}

// eachService runs a test with a bucket of each service; under the race detector with that of one, because package
// azure has its own tests there.
func eachService(t *testing.T, test func(t *testing.T, b *dumpBucket)) {
	t.Run("s3", func(t *testing.T) { test(t, startBucket(t)) })
	if !race.Enabled {
		t.Run("azure", func(t *testing.T) { test(t, startContainer(t)) })
	}
}

// gets returns the requests for objects since the last call.
func (b *dumpBucket) gets() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := b.asked
	b.asked = nil
	return slices.DeleteFunc(asked, func(s string) bool { return !strings.Contains(s, "bytes=") })
}

func (b *dumpBucket) setFault(f func(*http.Request) objectserver.Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = f
}

// options are testOptions with the sources in the bucket.
func (b *dumpBucket) options() Options {
	opts := testOptions()
	opts.SourceOptions = maps.Clone(b.sourceOptions)
	return opts
}

// upload puts the files below a directory under a prefix.
func (b *dumpBucket) upload(t *testing.T, dir, prefix string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		b.put(t, "dumps", prefix+filepath.ToSlash(name), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// writeParquet writes the rows of an Arrow file as Parquet, in row groups of so many rows.
func writeParquet(t *testing.T, from string, rowGroup int64) []byte {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ipc.NewFileReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(r.Schema(), &out, parquet.NewWriterProperties(
		parquet.WithMaxRowGroupLength(rowGroup), parquet.WithDictionaryDefault(false)), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.NumRecords() {
		rec, err := r.RecordBatch(i)
		if err == nil {
			err = w.WriteBuffered(rec)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
		t.Fatal(err)
	}
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestObjectsAreRead ingests the same dumps from a folder and from a bucket: the same rows, in the same partitions, and
// those that were written.
func TestObjectsAreRead(t *testing.T) { eachService(t, testObjectsAreRead) }

func testObjectsAreRead(t *testing.T, b *dumpBucket) {
	rows := dumpRows(1, 4000)
	for _, name := range []string{"arrow", "parquet"} {
		dir := t.TempDir()
		path := writeDump(t, dir, rows)
		if name == "parquet" {
			data := writeParquet(t, path, 1000)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "part 0%3A ü+.parquet"), data)
		}
		write(t, filepath.Join(dir, "_SUCCESS"), nil)
		write(t, filepath.Join(dir, ".part.crc"), []byte("no data"))
		b.upload(t, dir, name+"/")
		s := openStore(t, t.TempDir())
		if _, err := Run(t.Context(), s, "ads", []string{b.uri + "/" + name}, b.options()); err != nil {
			t.Fatal(name, err)
		}
		checkStored(t, s, 1, expectedRows(rows))
	}

	// In Hive's layout, with the escapes that Hive writes, and names that sort differently as keys.
	hive := t.TempDir()
	jsonl := func(from, n int) (out string) {
		for i := from; i < from+n; i++ {
			out += fmt.Sprintf(`{"session": %d, "time": %d, "ids": [%d, 2], "name": "n%d"}`+"\n", i/4, i, i, i%5)
		}
		return out
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, dir := range []string{"ds=2026-11-01/hr=03", "ds=2026-11-01/hr=03%3A30", "ds=2026-11-02/hr=3",
		"ds=2026-11-02/hr=__HIVE_DEFAULT_PARTITION__", "ds=2026-11-02/hr=3 +%2F"} {
		write(t, filepath.Join(hive, dir, "part-0.json"), []byte(jsonl(100*i, 30)))
		write(t, filepath.Join(hive, dir, "part-1.json.gz"), gzipped(t, jsonl(100*i+40, 20)))
		write(t, filepath.Join(hive, dir, "part-2.json.zst"), z.EncodeAll([]byte(jsonl(100*i+70, 20)), nil))
		write(t, filepath.Join(hive, dir, "_metadata"), []byte("no data"))
		write(t, filepath.Join(hive, dir, "empty.json"), nil)
	}
	write(t, filepath.Join(hive, "_temporary", "0", "part-0.json"), []byte(jsonl(9000, 9)))
	csv := t.TempDir()
	write(t, filepath.Join(csv, "a.csv"), []byte("session,time,x\n1,1,0.5\n1,2,\n"))
	write(t, filepath.Join(csv, "a", "b.csv"), []byte("session,time,x\n2,3,1.5\n"))
	write(t, filepath.Join(csv, "a.b.csv.gz"), gzipped(t, "session,time,x\n3,1,7\n"))
	mapping := filepath.Join(t.TempDir(), "csv.json")
	write(t, mapping, []byte(`{"text": {"delimiter": ",", "quote": "\"", "header": true}}`))
	for name, c := range map[string]struct{ dir, mapping string }{"hive": {hive, ""}, "csv": {csv, mapping}} {
		b.upload(t, c.dir, name+"/")
		b.put(t, "dumps", name+"/folder/", nil) // as consoles mark folders
		var stored []map[string][]map[string]cell
		for _, from := range []string{c.dir, b.uri + "/" + name + "/"} {
			opts := b.options()
			if opts.PartitionBy, opts.MappingFile = "", c.mapping; name == "csv" {
				opts.SessionKey, opts.TimeKey = "", ""
			}
			s := openStore(t, t.TempDir())
			report, err := Run(t.Context(), s, "ads", []string{from}, opts)
			if err != nil {
				t.Fatal(from, err)
			}
			if name == "hive" && (report.Rows != 350 || report.Partitions != 5 || report.Files != 15) {
				t.Fatalf("%s: %+v", from, report)
			}
			stored = append(stored, storedRows(t, s, 1))
		}
		if !reflect.DeepEqual(stored[0], stored[1]) {
			t.Fatalf("%s: from the folder %v, from the bucket %v", name, stored[0], stored[1])
		}
	}

	// Single objects, of which the folders above say the partition, and each once.
	opts := b.options()
	opts.PartitionBy = ""
	s := openStore(t, t.TempDir())
	one := b.uri + "/hive/ds=2026-11-01/hr=03%3A30/part-"
	report, err := Run(t.Context(), s, "ads", []string{one + "0.json", one + "1.json.gz"}, opts)
	if err != nil || report.Rows != 50 {
		t.Fatalf("%+v, %v", report, err)
	}
	parts := slices.Collect(maps.Keys(storedRows(t, s, 1)))
	if len(parts) != 1 || parts[0] != "ds=2026-11-01/hr=03%3A30" {
		t.Fatalf("partitions %q", parts)
	}
	_, err = Run(t.Context(), s, "ads", []string{one + "0.json"}, opts)
	if !errors.Is(err, storage.ErrDuplicateSource) {
		t.Fatalf("a second time: %v", err)
	}
	if _, err := Run(t.Context(), s, "ads", []string{one + "2.json.zst", one + "2.json.zst"}, opts); !errors.Is(err,
		ErrSameFile) {
		t.Fatalf("twice at once: %v", err)
	}
}

// TestORCObjectsAreRead reads a file by pyarrow, which gets a temporary file.
func TestORCObjectsAreRead(t *testing.T) { eachService(t, testORCObjectsAreRead) }

func testORCObjectsAreRead(t *testing.T, b *dumpBucket) {
	if exec.Command(cmp.Or(os.Getenv("DSISTORE_PYTHON"), "python3"), "-c", "import pyarrow.orc").Run() != nil {
		t.Skip("no pyarrow here: DSISTORE_PYTHON may name an interpreter that has it")
	}
	for _, name := range []string{"far-zlib.orc", "far-zstd.orc"} {
		from := filepath.Join("source", "testdata", "orc", name)
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		b.put(t, "dumps", "orc/"+name, data)
		var stored []map[string][]map[string]cell
		for _, from := range []string{from, b.uri + "/orc/" + name} {
			opts := b.options()
			opts.PartitionBy, opts.SessionKey, opts.TimeKey = "", "", ""
			s := openStore(t, t.TempDir())
			if _, err := Run(t.Context(), s, "ads", []string{from}, opts); err != nil {
				t.Fatal(from, err)
			}
			stored = append(stored, storedRows(t, s, 1))
		}
		if len(stored[0]) == 0 || !reflect.DeepEqual(stored[0], stored[1]) {
			t.Fatalf("%s: other rows in the bucket", name)
		}
	}
}

// TestObjectRequests counts the requests of files of some size.
func TestObjectRequests(t *testing.T) {
	onlyWhole(t)
	b := startBucket(t)
	rows := dumpRows(1, 200_000)
	dir := t.TempDir()
	path := writeDump(t, dir, rows)
	arrowFile, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	one, four := writeParquet(t, path, 1<<30), writeParquet(t, path, 50_000)
	small := writeParquet(t, writeDump(t, dir, dumpRows(2, 500)), 1<<30)
	for _, c := range []struct {
		name    string
		data    []byte
		memory  int64
		most    int // requests
		spooled bool
	}{
		{"small.parquet", small, 1 << 30, 2, false}, // its format, and all of it with its end
		// Its format, its end, and the row group.
		{"one.parquet", one, 1 << 30, 2 + (len(one)+requestBytes-1)/requestBytes, false},
		{"spooled.parquet", one, 1 << 20, 2 + (len(one)+requestBytes-1)/requestBytes, true},
		{"four.parquet", four, 1 << 30, 2 + 4, false},
		{"all.arrow", arrowFile, 1 << 30, 1 + (len(arrowFile)+requestBytes-1)/requestBytes, false},
	} {
		b.put(t, "dumps", "counted/"+c.name, c.data)
		b.gets()
		opts := b.options()
		files, err := source.Discover(t.Context(), []string{b.uri + "/counted/" + c.name}, source.Options{
			StorageOptions: opts.SourceOptions, PageBytes: c.memory,
			TempDir: func() (string, error) {
				if !c.spooled {
					return "", errors.New("no temporary file is needed")
				}
				return dir, nil
			},
		})
		if err != nil {
			t.Fatal(c.name, err)
		}
		src, err := files[0].Open(t.Context())
		if err != nil {
			t.Fatal(c.name, err)
		}
		n := 0
		for {
			chunk, err := src.Next(t.Context())
			if err != nil {
				break
			}
			n += chunk.Rows
		}
		if err := src.Close(); err != nil {
			t.Fatal(err)
		}
		if want := 200_000; n != want && n != 500 {
			t.Fatalf("%s: %d rows", c.name, n)
		}
		gets := b.gets()
		slices.Sort(gets)
		gets = slices.Compact(gets) // one that is late, on a busy machine, is sent twice
		t.Logf("%s: %d bytes in %d requests", c.name, len(c.data), len(gets))
		if len(gets) > c.most {
			t.Errorf("%s: %d bytes in %d requests, want at most %d:\n%s", c.name, len(c.data), len(gets), c.most,
				strings.Join(gets, "\n"))
		}
	}
}

// requestBytes is how much one request asks for.
const requestBytes = 8 << 20

// TestObjectsThatChange: an object that is replaced, or deleted, while it is read is an error and no mixture, also
// where bad files are left out; the table is as it was.
func TestObjectsThatChange(t *testing.T) { eachService(t, testObjectsThatChange) }

func testObjectsThatChange(t *testing.T, b *dumpBucket) {
	dir := t.TempDir()
	first := writeParquet(t, writeDump(t, dir, dumpRows(1, 40_000)), 10_000)
	second := writeParquet(t, writeDump(t, dir, dumpRows(2, 40_000)), 10_000)
	for _, name := range []string{"x.parquet", "x.arrow"} {
		one, two := first, second
		if name == "x.arrow" {
			one, two = bytes.Clone(arrowOf(t, 1, 5<<18)), arrowOf(t, 2, 5<<18)
		}
		b.put(t, "dumps", name, one)
		reads := 0
		b.setFault(func(r *http.Request) objectserver.Fault {
			if rangeOf(r) != "" {
				if reads++; reads == 3 {
					b.put(t, "dumps", name, two)
				}
			}
			return objectserver.Fault{}
		})
		s := openStore(t, t.TempDir())
		opts := b.options()
		opts.PartitionBy, opts.SessionKey, opts.TimeKey = "", "", ""
		opts.OnBadRow, opts.Memory = BadRowQuarantine, 1<<28
		_, err := Run(t.Context(), s, "ads", []string{b.uri + "/" + name}, opts)
		b.setFault(nil)
		if !errors.Is(err, object.ErrChanged) || !errors.Is(err, source.ErrUnread) ||
			!strings.Contains(err.Error(), b.uri+"/"+name) {
			t.Fatalf("%s: %v after %d reads", name, err, reads)
		}
		t.Log(err)
		if n := latest(t, s); n != 0 {
			t.Fatalf("snapshot %d", n)
		}
	}
	// As it is now, it is read.
	s, opts := openStore(t, t.TempDir()), b.options()
	if _, err := Run(t.Context(), s, "ads", []string{b.uri + "/x.parquet"}, opts); err != nil {
		t.Fatal(err)
	}
	checkStored(t, s, 1, expectedRows(dumpRows(2, 40_000)))
}

// arrowOf returns an Arrow stream of so many rows of one column.
func arrowOf(t *testing.T, value int64, rows int) []byte {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for range rows {
		b.Field(0).(*array.Int64Builder).Append(value)
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	for at := int64(0); at < rec.NumRows(); at += 1 << 16 {
		part := rec.NewSlice(at, min(at+1<<16, rec.NumRows()))
		err := w.Write(part)
		part.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestObjectErrors: what is missing, damaged, refused or not given is said, with its URI.
func TestObjectErrors(t *testing.T) { eachService(t, testObjectErrors) }

func testObjectErrors(t *testing.T, b *dumpBucket) {
	dir := t.TempDir()
	good := writeParquet(t, writeDump(t, dir, dumpRows(1, 3000)), 1000)
	damaged := bytes.Clone(good)
	for i := len(damaged) / 3; i < len(damaged)/3+500; i++ {
		damaged[i] ^= 0x5a
	}
	b.put(t, "dumps", "day/part-0.parquet", good)
	b.put(t, "dumps", "damaged/part-0.parquet", damaged)
	b.put(t, "dumps", "cut/part-0.parquet", good[:len(good)/2])
	b.put(t, "dumps", "row/part-0.json", []byte("{\"session\": 1}\n{\"session\": \"x}\n"))
	b.put(t, "dumps", "delta/ds=1/part-0.parquet", good)
	b.put(t, "dumps", "delta/_delta_log/00000000000000000000.json", []byte("{}"))
	b.put(t, "dumps", "iceberg/data/part-0.parquet", good)
	b.put(t, "dumps", "iceberg/metadata/v1.metadata.json", []byte("{}"))
	b.put(t, "dumps", "hudi/p/.hoodie_partition_metadata", []byte("x"))
	b.put(t, "dumps", "hudi/p/part-0.parquet", good)
	b.put(t, "dumps", "unfinished/part-0.parquet._COPYING_", good)
	for _, c := range []struct {
		uri  string
		is   error
		says []string
	}{
		{"day/part-1.parquet", object.ErrNotFound, []string{b.uri + "/day/part-1.parquet", "part-0.parquet"}},
		{"dya", object.ErrNotFound, []string{b.uri + "/dya", `"day"`}},
		{"day/*.parquet", object.ErrNotFound, []string{"patterns are not expanded"}},
		{"damaged", nil, []string{b.uri + "/damaged/part-0.parquet", "row group", "column"}},
		{"cut", nil, []string{b.uri + "/cut/part-0.parquet", "cut short"}},
		{"row", nil, []string{b.uri + "/row/part-0.json", "line 2"}},
		{"delta", nil, []string{"a Delta Lake table", b.uri + "/delta/_delta_log"}},
		{"delta/ds=1", nil, []string{"a Delta Lake table", b.uri + "/delta/_delta_log"}},
		{"delta/ds=1/part-0.parquet", nil, []string{"a Delta Lake table"}},
		{"iceberg", nil, []string{"an Iceberg table"}},
		{"iceberg/data", nil, []string{"an Iceberg table", b.uri + "/iceberg/metadata/v1.metadata.json"}},
		{"hudi", nil, []string{"a Hudi table"}},
		{"hudi/p/part-0.parquet", nil, []string{"a Hudi table"}},
		{"unfinished", nil, []string{"not finished"}},
	} {
		opts := b.options()
		if c.uri == "row" {
			opts.PartitionBy, opts.TimeKey = "", ""
		}
		_, err := Run(t.Context(), openStore(t, t.TempDir()), "ads", []string{b.uri + "/" + c.uri}, opts)
		if err == nil || c.is != nil && !errors.Is(err, c.is) ||
			slices.ContainsFunc(c.says, func(s string) bool { return !strings.Contains(err.Error(), s) }) {
			t.Errorf("%s: %v, want %q", c.uri, err, c.says)
		}
	}
	scheme := strings.TrimSuffix(b.uri, "dumps")
	for uri, says := range map[string]string{
		scheme + "no-such-bucket/x": "no-such-bucket", "gcs9://b/x": "gcs9://", scheme + "/x": "no bucket",
		scheme + "key:secret@b/x": "would be logged",
	} {
		_, err := Run(t.Context(), openStore(t, t.TempDir()), "ads", []string{uri}, b.options())
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "key:secret") {
			t.Errorf("%s: %v", uri, err)
		}
	}

	// A service that gives nothing is no bad file.
	b.setFault(func(r *http.Request) objectserver.Fault {
		if rangeOf(r) != "" {
			return objectserver.Fault{Status: http.StatusForbidden, Code: "AccessDenied"}
		}
		return objectserver.Fault{}
	})
	opts := b.options()
	opts.OnBadRow = BadRowQuarantine
	_, err := Run(t.Context(), openStore(t, t.TempDir()), "ads", []string{b.uri + "/day"}, opts)
	if !errors.Is(err, object.ErrDenied) || !errors.Is(err, source.ErrUnread) {
		t.Errorf("denied: %v", err)
	}
	// A body that breaks off is read on.
	broken := 0
	b.setFault(func(r *http.Request) objectserver.Fault {
		if rangeOf(r) != "" {
			if broken++; broken%2 == 1 {
				return objectserver.Fault{Cut: 1000}
			}
		}
		return objectserver.Fault{}
	})
	s := openStore(t, t.TempDir())
	if _, err := Run(t.Context(), s, "ads", []string{b.uri + "/day"}, b.options()); err != nil {
		t.Fatal(err)
	}
	checkStored(t, s, 1, expectedRows(dumpRows(1, 3000)))
}
