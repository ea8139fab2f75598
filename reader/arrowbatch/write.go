package arrowbatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/dsistore/dsistore/reader"
)

// Format is a file format that Write knows.
type Format uint8

const (
	Parquet   Format = 1 // zstd
	IPCFile   Format = 2
	IPCStream Format = 3
	JSONLines Format = 4 // an object per row
)

func (f Format) String() string {
	switch f {
	case Parquet:
		return "parquet"
	case IPCFile:
		return "arrow"
	case IPCStream:
		return "arrows"
	case JSONLines:
		return "jsonl"
	}
	return fmt.Sprintf("format(%d)", uint8(f))
}

// Plain reports whether a file has a value per row, whatever the plan's Dedup is.
func (f Format) Plain() bool { return f == Parquet || f == JSONLines }

// ParseFormat returns the format of a file name by its extension: .parquet, .arrow or .feather (a file), .arrows (a
// stream), .jsonl or .ndjson; "-" is a stream.
func ParseFormat(name string) (Format, error) {
	switch strings.ToLower(path.Ext(name)) {
	case ".parquet":
		return Parquet, nil
	case ".arrow", ".feather":
		return IPCFile, nil
	case ".arrows":
		return IPCStream, nil
	case ".jsonl", ".ndjson":
		return JSONLines, nil
	}
	if name == "-" {
		return IPCStream, nil
	}
	return 0, fmt.Errorf("file %q: want a name that ends in .parquet, .arrow, .arrows or .jsonl, or - for an Arrow "+
		"stream", name)
}

// recordWriter is what Write needs of a format's writer.
type recordWriter interface {
	Write(arrow.RecordBatch) error
	Close() error
}

// Write writes every batch that s still gives and returns the rows written. Memory is bounded by the scanner's and, of
// Parquet, by one row group and the open pages of its columns, which take about as much. It closes neither s nor w;
// what w holds after an error is not a whole file. Parquet is written plain, whatever the plan's Dedup is, and an IPC
// file cannot hold dictionaries, of which every batch has its own.
func Write(ctx context.Context, w io.Writer, f Format, s *reader.Scanner, opts Options) (rows uint64, err error) {
	opts.Plain = opts.Plain || f.Plain()
	c, err := NewConverter(s.Plan(), opts)
	if err != nil {
		return 0, err
	}
	out, err := newWriter(w, f, c)
	if err != nil {
		return 0, err
	}
	for {
		b, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return rows, out.Close()
		}
		if err != nil {
			return rows, err
		}
		n := b.Rows
		err = writeBatch(out, c, b)
		b.Release()
		if err != nil {
			return rows, err
		}
		rows += uint64(n)
	}
}

// WriteSchema writes the IPC stream that Write would, without any rows.
func WriteSchema(w io.Writer, p *reader.Plan, opts Options) error {
	schema, err := Schema(p, opts)
	if err != nil {
		return err
	}
	return ipc.NewWriter(w, ipc.WithSchema(schema)).Close()
}

func writeBatch(out recordWriter, c *Converter, b *reader.Batch) error {
	rec, err := c.Record(b)
	if err != nil {
		return err
	}
	defer rec.Release()
	return out.Write(rec)
}

func newWriter(w io.Writer, f Format, c *Converter) (recordWriter, error) {
	switch f {
	case Parquet:
		return newParquetWriter(w, c.Schema(), rowGroupBytes)
	case IPCFile:
		if name, ok := c.dictionary(); ok {
			return nil, fmt.Errorf("arrow: column %q would be a dictionary, another in every batch, which an IPC "+
				"file cannot hold: "+
				"write a stream (.arrows), or partial", name)
		}
		return ipc.NewFileWriter(w, ipc.WithSchema(c.Schema()))
	case IPCStream:
		out := ipc.NewWriter(w, ipc.WithSchema(c.Schema()))
		if _, ok := c.dictionary(); ok {
			return &dictionaryWriter{w: out, last: make([]int, len(c.columns))}, nil
		}
		return out, nil
	case JSONLines:
		return jsonWriter{w}, nil
	}
	return nil, fmt.Errorf("arrow: %v: want parquet, arrow, arrows or jsonl", f)
}

// A jsonWriter writes an object per row, on a line of its own.
type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(rec arrow.RecordBatch) error { return array.RecordToJSON(rec, j.w) }
func (j jsonWriter) Close() error                      { return nil }
