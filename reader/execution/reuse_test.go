package execution

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage/catalog"
)

// testPools returns the pools of a plan.
func testPools(a memory.Allocator) (*Pools, *plan.Plan) {
	p := &plan.Plan{
		Table: "t", Snapshot: 1, BatchSize: 100, Output: plan.OutputTensors,
		Features: []catalog.Feature{{ID: 1, Name: "f", Type: vector.Type{Kind: vector.Sparse, Elem: vector.Int64}}},
	}
	return NewPools(&Source{Plan: p, Features: p.Features},
		&Options{Workers: 1, MemoryBudget: 1 << 20, Batches: batch.Options{Allocator: a}}), p
}

// All fields of a plan count but those that say which rows are read: also fields that will be added.
func TestFits(t *testing.T) {
	p, of := testPools(memory.Heap{})
	rows := []string{"Table", "Snapshot", "Partition", "Filter", "Downsample", "SampleList", "Branch", "Overlays",
		"BranchList"}
	fields := reflect.TypeFor[plan.Plan]()
	for i := range fields.NumField() {
		other := *of
		field := reflect.ValueOf(&other).Elem().Field(i)
		change(t, field)
		name := fields.Field(i).Name
		if got, want := p.fits(&p.key, &other), slices.Contains(rows, name); got != want {
			t.Errorf("another %s: fits says %v", name, got)
		}
	}
	if !p.fits(&p.key, of) {
		t.Error("the plan does not fit what was made for it")
	}
}

// change makes v, a field or what is in one, another value.
func change(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Slice:
		v.Set(reflect.Append(v.Slice3(0, v.Len(), v.Len()), reflect.Zero(v.Type().Elem())))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		change(t, v.Field(0))
	default:
		t.Fatalf("a field of a plan is a %s: say here how to change it", v.Kind())
	}
}

// Pools of closed readers are dropped when their time is over.
func TestClosedPoolsEnd(t *testing.T) {
	closed := closedPools{keep: time.Microsecond}
	p, of := testPools(memory.Heap{})
	closed.put(p)
	for deadline := time.Now().Add(10 * time.Second); !p.Batches.Counts().Closed; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("closed pools stay for ever")
		}
	}
	if p := closed.take(&p.key, of); p != nil {
		t.Error("what was dropped is taken")
	}
}
