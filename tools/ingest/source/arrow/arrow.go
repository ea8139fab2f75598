package arrow

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
)

// Format is that of Arrow IPC streams and files.
var Format = &input.Format{
	Name:     "arrow",
	Magic:    []string{"ARROW1", "FEA1", "\xff\xff\xff\xff"},
	Suffixes: []string{".arrow", ".arrows", ".ipc", ".feather"},
	Begin: func(d *input.Set) input.Opener {
		return func(ctx context.Context, in input.File) (column.Reader, error) {
			src, err := in.Read(ctx)
			if err != nil {
				return nil, err
			}
			return input.Opened(NewReader(src, src, &d.ReadOptions))
		}
	},
}

// Reader reads an Arrow IPC stream or file. Record batches are cut into chunks.
type Reader struct {
	batcher
	src      io.Closer // nil: not ours to close
	messages *messageReader
	reader   *ipc.Reader
	Finish   func() error // called at the end marker; nil: nothing to do
}

// NewReader reads the schema from in, and closes src, if any, when it is closed.
func NewReader(in io.Reader, src io.Closer, opts *column.ReadOptions) (r *Reader, err error) {
	r = &Reader{batcher: newBatcher(opts), src: src}
	defer func() {
		if p := recover(); p != nil {
			err = column.Recovered(p)
		}
		if err != nil {
			r.Close()
			r = nil
		}
	}()
	br := bufio.NewReaderSize(in, 64<<10)
	r.messages = &messageReader{r: br, limits: &opts.Limits}
	head, err := br.Peek(8)
	switch {
	case len(head) == 0 && err == io.EOF:
		return r, notStream(nil)
	case len(head) == 0 && err != nil:
		return r, cutShort(err)
	}
	switch {
	case bytes.HasPrefix(head, []byte("ARROW1")):
		r.messages.file = true
		if _, err := br.Discard(8); err != nil {
			return r, cutShort(err)
		}
	case bytes.HasPrefix(head, []byte("FEA1")):
		return r, column.Refuse("", "Feather V1 files are not supported: write Feather V2, which is an Arrow file")
	case bytes.HasPrefix(head, []byte("PAR1")) || bytes.HasPrefix(head, []byte("ORC")):
		return r, fmt.Errorf("the input is no Arrow stream: it begins with %q", head[:4])
	}
	if r.reader, err = ipc.NewReaderFromMessageReader(r.messages, ipc.WithDelayReadSchema(false)); err != nil {
		if err = arrowError(err); err == ErrCutShort && !bytes.HasPrefix(head, []byte("\xff\xff\xff\xff")) {
			err = notStream(head)
		}
		return r, err
	}
	r.setSchema(r.reader.Schema())
	return r, nil
}

// notStream is the error of what begins with other bytes than a stream does, and ends before the first message that
// they would announce. It matches ErrCutShort.
type notStream []byte

func (n notStream) Error() string {
	what := "there is nothing in it"
	if len(n) > 0 {
		what = fmt.Sprintf("it begins with %q; --format csv and --format jsonl read text", []byte(n))
	}
	return "no Arrow stream, or one that was cut short: " + what
}

func (notStream) Is(target error) bool { return target == ErrCutShort }

// arrowError gives errors of ours back without the library's words around them.
func arrowError(err error) error {
	if errors.Is(err, ErrCutShort) {
		return ErrCutShort
	}
	return err
}

func (r *Reader) Close() error {
	if r.reader != nil {
		r.reader.Release()
		r.reader = nil
	}
	if r.src == nil {
		return nil
	}
	err := r.src.Close()
	r.src = nil
	return err
}

func (r *Reader) Next(ctx context.Context) (*column.Batch, error) {
	for !r.more() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !r.reader.Next() {
			if err := r.reader.Err(); err != nil {
				return nil, arrowError(err)
			}
			// The library ends quietly when the end comes where dictionaries should be.
			if !r.messages.ended {
				return nil, ErrCutShort
			}
			if r.Finish != nil {
				if err := r.Finish(); err != nil {
					return nil, err
				}
			}
			return nil, io.EOF
		}
		r.begin(r.reader.RecordBatch(), r.messages.bytes)
	}
	return r.next(ctx, nil)
}
