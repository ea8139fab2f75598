package arrow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// TestViewsWithoutCounts: the counts of the buffers of views are fewer than the views, and what follows them says that
// there are 2^40 buffers.
func TestViewsWithoutCounts(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.BinaryTypes.StringView},
		{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.BinaryView)}}, nil)
	b := arrowarray.NewRecordBuilder(memory.DefaultAllocator, schema)
	b.Field(0).(*arrowarray.StringViewBuilder).Append(strings.Repeat("x", 100))
	list := b.Field(1).(*arrowarray.ListBuilder)
	list.Append(true)
	list.ValueBuilder().(*arrowarray.BinaryViewBuilder).Append(make([]byte, 100))
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := errors.Join(w.Write(b.NewRecordBatch()), w.Close()); err != nil {
		t.Fatal(err)
	}
	read := func(data []byte) error {
		opts := &column.ReadOptions{Limits: column.Limits{}.WithDefaults()}
		r, err := NewReader(bytes.NewReader(data), nil, opts)
		if err != nil {
			return err
		}
		defer r.Close()
		for err == nil {
			_, err = r.Next(t.Context())
		}
		return err
	}
	data := out.Bytes()
	if err := read(data); err != io.EOF {
		t.Fatal(err)
	}
	counts := []byte{2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}
	at := bytes.LastIndex(data, counts)
	if at < 0 {
		t.Fatal("the stream has no counts")
	}
	binary.LittleEndian.PutUint32(data[at:], 1)
	binary.LittleEndian.PutUint64(data[at+12:], 1<<40)
	if err := read(data); !errors.Is(err, errDamagedMessage) {
		t.Error(err)
	}
}
