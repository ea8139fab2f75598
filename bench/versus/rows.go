package versus

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// Rows are a dump's rows as Arrow records in memory that the collector knows nothing of: a mapped file.
type Rows struct {
	Schema  *arrow.Schema
	Records []arrow.RecordBatch
	unmap   func() error
}

// recordRows is how many rows a record has.
const recordRows = 4096

// MapRows writes the dump's rows to path as an uncompressed Arrow file, unless it is there, and maps it.
func MapRows(ctx context.Context, path string, d *Dump) (_ *Rows, err error) {
	if err := writeRows(ctx, path, d); err != nil {
		return nil, err
	}
	data, unmap, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	r := &Rows{unmap: unmap}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	// What is read once is in the page cache.
	sum := byte(0)
	for i := 0; i < len(data); i += 4096 {
		sum ^= data[i]
	}
	_ = sum
	in, err := ipc.NewMappedFileReader(data)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	r.Schema = in.Schema()
	for i := range in.NumRecords() {
		rec, err := in.RecordBatchAt(i)
		if err != nil {
			return nil, err
		}
		r.Records = append(r.Records, rec)
	}
	return r, nil
}

// Close releases the records and unmaps the file.
func (r *Rows) Close() error {
	for _, rec := range r.Records {
		rec.Release()
	}
	r.Records = nil
	return r.unmap()
}

func writeRows(ctx context.Context, path string, d *Dump) (err error) {
	stamp := fmt.Sprintf("%s.%d-%d", path, d.Rows, d.Bytes) // made of this dump
	if _, err := os.Stat(stamp); err == nil {
		return nil
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var w *ipc.FileWriter
	for _, name := range d.Paths() {
		if err := copyParquet(ctx, name, out, &w); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(stamp, nil, 0o666)
}

// copyParquet appends a Parquet file's rows to *w, which it makes of out for the first.
func copyParquet(ctx context.Context, path string, out *os.File, w **ipc.FileWriter) error {
	in, err := file.OpenParquetFile(path, false)
	if err != nil {
		return err
	}
	defer in.Close()
	r, err := pqarrow.NewFileReader(in, pqarrow.ArrowReadProperties{BatchSize: recordRows}, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	records, err := r.GetRecordReader(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer records.Release()
	for records.Next() {
		if *w == nil {
			if *w, err = ipc.NewFileWriter(out, ipc.WithSchema(records.Schema())); err != nil {
				return err
			}
		}
		if err := (*w).Write(records.RecordBatch()); err != nil {
			return err
		}
	}
	return records.Err()
}
