package batch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage/catalog"
)

// More lists than an int32 counts are an error, before any memory is made for them.
func TestTooManyLists(t *testing.T) {
	p := &plan.Plan{Output: plan.OutputTensors, BatchSize: plan.MaxBatchSize}
	for i := range 128 {
		p.Features = append(p.Features, catalog.Feature{Name: fmt.Sprint(i),
			Type: vector.Type{Kind: vector.Sparse, Elem: vector.Int64}})
	}
	pool := NewPool(p, Options{Allocator: memory.Heap{}, Batches: 1})
	q := NewQuota(pool, 1)
	d := q.TryDraft()
	d.Rows = plan.MaxBatchSize
	q.Make(d)
	if d.Err == nil || !strings.Contains(d.Err.Error(), "the batch size, 16777216, is too large") {
		t.Errorf("%v", d.Err)
	}
	if n := pool.Counts().Bytes; n > 1<<20 {
		t.Errorf("%d bytes were made", n)
	}
	q.Drop(d)
	pool.Close()
}
