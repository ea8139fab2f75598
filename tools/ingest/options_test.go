package ingest

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

func TestOptionsNameTheBadField(t *testing.T) {
	for want, o := range map[string]Options{
		"memory of -1 bytes":   {Memory: -1},
		"-2 workers":           {Workers: -2},
		"segments of -1 rows":  {SegmentRows: -1},
		"stripes of -1 rows":   {StripeRows: -1},
		"stripes of -1 bytes":  {StripeBytes: -1},
		`on bad row "ignore"`:  {OnBadRow: "ignore"},
		"bad row report":       {BadRowReport: "x"},
		`column "c"`:           {PartitionBy: "c", TimeKey: "c"},
		"both partition and k": {PartitionBy: "c", SessionKey: "c"},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v: want %q", o, err, want)
		}
	}
	if err := (&Options{}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestSpillFiles: they lie in a local store, have no name, and names that killed ingests left are removed.
func TestSpillFiles(t *testing.T) {
	root := filepath.Join(t.TempDir(), "[store] *")
	blobs, err := object.NewLocal(root)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := spillDir("", blobs)
	if err != nil || dir != filepath.Join(root, "_tmp") {
		t.Fatalf("directory %q, %v", dir, err)
	}
	stale := filepath.Join(dir, spillPrefix+"17")
	other := filepath.Join(dir, "another's")
	for _, name := range []string{stale, other} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := spillDir(dir, object.NewMemory()); err != nil {
		t.Fatal(err)
	}
	q, err := newSequence(dir)
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "another's" {
		t.Fatalf("in the directory: %v, %v", left, err)
	}
	if err := q.close(); err != nil {
		t.Fatal(err)
	}
}

// TestMemoryLimitIsRestored: the runtime's limit is the sum of what runs, and in the end what it was.
func TestMemoryLimitIsRestored(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	first := holdMemoryLimit(1 << 30)
	second := holdMemoryLimit(1 << 20)
	if got := debug.SetMemoryLimit(-1); got != 1<<30+1<<20 {
		t.Fatalf("limit %d", got)
	}
	first()
	if got := debug.SetMemoryLimit(-1); got != minLimit {
		t.Fatalf("limit %d", got)
	}
	second()
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Fatalf("limit %d", got)
	}
}
