// Command cshared is the engine as a C shared library: build it with -buildmode=c-shared. package engine draws how the
// parts meet; this one turns C's types into Go's and nothing else.
package main

/*
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capsule.h"
#include "gil.h"
#include "guard.h"

typedef struct { char *data; int64_t size; } dsi_text;
*/
import "C"

import (
	"bytes"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/cdata"

	"github.com/dsistore/dsistore/internal/processors"
	"github.com/dsistore/dsistore/python/engine"
	"github.com/dsistore/dsistore/tools/ingest/source"
)

func main() {}

func init() { processors.ReserveForCallers() }

var theEngine = engine.New(cMemory{new(freeMappings)}, cMemory{&freeMappings{locked: true}})

// text returns a copy in C's heap, which the caller frees with dsi_free.
func text(b []byte) C.dsi_text {
	return C.dsi_text{data: (*C.char)(C.CBytes(b)), size: C.int64_t(len(b))}
}

func request(p *C.char, n C.int64_t) []byte {
	return bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(p)), int(n)))
}

// dsi_call runs one request, as engine.Run does. It returns 0 with the answer, which is freed with dsi_free, or 1 when
// there is none yet. call, where it is not 0, is the number that dsi_wait and dsi_end take, in both cases.
//
//export dsi_call
func dsi_call(p *C.char, n, milliseconds C.int64_t, call *C.int64_t, answer *C.dsi_text) C.int32_t {
	b, done := theEngine.Run(request(p, n), time.Duration(milliseconds)*time.Millisecond,
		(*int64)(unsafe.Pointer(call)))
	if !done {
		return 1
	}
	*answer = text(b)
	return 0
}

// dsi_begin starts one request: see engine.Begin. call becomes its number. dsi_end ends it.
//
//export dsi_begin
func dsi_begin(p *C.char, n C.int64_t, call *C.int64_t) {
	*call = C.int64_t(theEngine.Begin(request(p, n)))
}

// dsi_wait waits at most milliseconds for the answer of a call. It returns 0 with the answer, which is freed with
// dsi_free, or 1 when there is none yet.
//
//export dsi_wait
func dsi_wait(call, milliseconds C.int64_t, answer *C.dsi_text) C.int32_t {
	b, done := theEngine.Wait(int64(call), time.Duration(milliseconds)*time.Millisecond)
	if !done {
		return 1
	}
	*answer = text(b)
	return 0
}

// dsi_end forgets a call. With keep not 0 what it opened is the caller's; else the call is cancelled, and what it
// opened closed.
//
//export dsi_end
func dsi_end(call C.int64_t, keep C.int32_t) { theEngine.End(int64(call), keep != 0) }

// dsi_free frees what a dsi_text holds.
//
//export dsi_free
func dsi_free(p *C.char) { C.free(unsafe.Pointer(p)) }

// dsi_next waits at most milliseconds for the loader's next batch. Its status is engine.Status: with 0, batch has the
// batch until dsi_release of its id; with 3, what holds the error and is freed with dsi_free.
//
//export dsi_next
func dsi_next(loader, milliseconds C.int64_t, batch *C.dsi_batch, what *C.dsi_text) C.int32_t {
	given, status, message := theEngine.Next(int64(loader), time.Duration(milliseconds)*time.Millisecond)
	switch status {
	case engine.StatusBatch:
		*batch = C.dsi_batch{
			block: unsafe.Pointer(unsafe.SliceData(given.Block)), size: C.int64_t(len(given.Block)),
			id: C.int64_t(given.ID), index: C.int64_t(given.Index), epoch: C.int64_t(given.Epoch),
		}
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

// dsi_use_locks says how the pages of loaders with "page_locked" are locked: by cudaSetDevice, cudaHostRegister and
// cudaHostUnregister, for a device. It is called before the first of them is opened, and once.
//
//export dsi_use_locks
func dsi_use_locks(setDevice, lock, unlock unsafe.Pointer, device C.int32_t) {
	useLocks(setDevice, lock, unlock, int(device))
}

// dsi_close closes a loader and waits until it has stopped. It returns 0, or 1 when there is none, or it did not end
// well.
//
//export dsi_close
func dsi_close(loader C.int64_t) C.int32_t {
	if err := theEngine.CloseLoader(int64(loader)); err != nil {
		return 1
	}
	return 0
}

// dsi_stream makes records, which "records_open" gave, an ArrowArrayStream at out, which the caller releases as the C
// stream interface says. It returns 0, or 1 when there are none.
//
//export dsi_stream
func dsi_stream(records C.int64_t, out unsafe.Pointer) C.int32_t {
	r := theEngine.TakeRecords(int64(records))
	if r == nil {
		return 1
	}
	defer r.Release()
	under := C.dsi_guard((*C.struct_dsi_array_stream)(out))
	if under == nil {
		return 1
	}
	cdata.ExportRecordReader(r, (*cdata.CArrowArrayStream)(unsafe.Pointer(under)))
	return 0
}

// dsi_begin_stream is dsi_begin for a method that reads the ArrowArrayStream at in, which it takes over before it
// returns.
//
//export dsi_begin_stream
func dsi_begin_stream(p *C.char, n C.int64_t, in unsafe.Pointer, call *C.int64_t) {
	*call = C.int64_t(theEngine.BeginStream(request(p, n), func() (source.RecordReader, error) {
		records, err := cdata.ImportCRecordReader((*cdata.CArrowArrayStream)(in), nil)
		if err != nil {
			return nil, err
		}
		return records.(source.RecordReader), nil
	}))
}

// dsi_destructor returns the PyCapsule_Destructor of capsules with a dsi_batch, or with an ArrowArrayStream: see
// capsule.h.
//
//export dsi_destructor
func dsi_destructor(getPointer, rawFree unsafe.Pointer, ofBatch C.int32_t) C.uintptr_t {
	return C.dsi_destructor_with(getPointer, rawFree, ofBatch)
}

// dsi_gil takes the functions of the interpreter that dsi_gil_with takes.
//
//export dsi_gil
func dsi_gil(own, current, save, restore, finalizing unsafe.Pointer) {
	C.dsi_gil_with(own, current, save, restore, finalizing)
}
