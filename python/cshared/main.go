// Command cshared is the engine as a C shared library: build it with -buildmode=c-shared. package engine draws how the
// parts meet; this one turns C's types into Go's and nothing else.
package main

/*
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char *data; int64_t size; } dsi_text;

static void *dsi_aligned(size_t n) {
	void *p = NULL;
	return posix_memalign(&p, 64, n) == 0 ? p : NULL;
}
*/
import "C"

import (
	"bytes"
	"context"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/cdata"

	"github.com/dsistore/dsistore/python/engine"
)

func main() {}

var theEngine = engine.New(cMemory{})

// cMemory is C's heap.
type cMemory struct{}

func (cMemory) Allocate(n int) []byte {
	p := C.dsi_aligned(C.size_t(n))
	if p == nil {
		panic("out of memory")
	}
	return unsafe.Slice((*byte)(p), n)
}

func (cMemory) Free(b []byte) { C.free(unsafe.Pointer(unsafe.SliceData(b))) }

// text returns a copy in C's heap, which the caller frees with dsi_free.
func text(b []byte) C.dsi_text {
	return C.dsi_text{data: (*C.char)(C.CBytes(b)), size: C.int64_t(len(b))}
}

func request(p *C.char, n C.int64_t) []byte {
	return bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(p)), int(n)))
}

// dsi_call runs one request. The answer is freed with dsi_free.
//
//export dsi_call
func dsi_call(p *C.char, n C.int64_t) C.dsi_text {
	return text(theEngine.Call(context.Background(), request(p, n)))
}

// dsi_free frees what a dsi_text holds.
//
//export dsi_free
func dsi_free(p *C.char) { C.free(unsafe.Pointer(p)) }

// dsi_next waits at most milliseconds for the loader's next batch. Its status is engine.Status: with 0, words and n
// describe the batch until dsi_release of words[1]; with 3, what holds the error and is freed with dsi_free.
//
//export dsi_next
func dsi_next(loader, milliseconds C.int64_t, words **C.int64_t, n *C.int64_t, what *C.dsi_text) C.int32_t {
	w, status, message := theEngine.Next(int64(loader), time.Duration(milliseconds)*time.Millisecond)
	switch status {
	case engine.StatusBatch:
		*words = (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(w)))
		*n = C.int64_t(len(w))
	case engine.StatusError:
		*what = text(message)
	}
	return C.int32_t(status)
}

// dsi_release takes a batch back. It returns 0, or 1 when the batch is not held.
//
//export dsi_release
func dsi_release(batch C.int64_t) C.int32_t {
	if err := theEngine.Release(int64(batch)); err != nil {
		return 1
	}
	return 0
}

// dsi_stream opens a plan as an ArrowArrayStream at out, which the caller releases as the C stream interface says. The
// answer is empty, or an error, and is freed with dsi_free.
//
//export dsi_stream
func dsi_stream(p *C.char, n C.int64_t, out unsafe.Pointer) C.dsi_text {
	records, failure := theEngine.Records(context.Background(), request(p, n))
	if records == nil {
		return text(failure)
	}
	cdata.ExportRecordReader(records, (*cdata.CArrowArrayStream)(out))
	records.Release()
	return text(nil)
}

// dsi_ingest_stream starts an ingest of the ArrowArrayStream at in, which it takes over, and answers as "ingest" does.
//
//export dsi_ingest_stream
func dsi_ingest_stream(p *C.char, n C.int64_t, in unsafe.Pointer) C.dsi_text {
	records, err := cdata.ImportCRecordReader((*cdata.CArrowArrayStream)(in), nil)
	if err != nil {
		return text(engine.Failure(err))
	}
	return text(theEngine.IngestRecords(context.Background(), request(p, n), records.(engine.RecordSource)))
}
