package arrow

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	flatbuffers "github.com/google/flatbuffers/go"
)

// A messageReader gives the library the messages of an Arrow IPC stream. It stands in for the library's own because
// that one takes the end of the input for the end of the stream, and allocates what lengths in the input say.
//
//	message        FFFFFFFF (4) · length (4 LE) · metadata (flatbuffer, padded) · body
//	old message    length (4 LE) · metadata · body
//	end            FFFFFFFF 00000000, in old streams 00000000
//
// An IPC file is "ARROW1" and two bytes of padding before a stream, and a footer after it, which is not needed.
type messageReader struct {
	r      *bufio.Reader
	limits *column.Limits
	msg    *ipc.Message
	file   bool // a footer follows the stream
	ended  bool
	bytes  int64 // of the last record batch
	// views is how many columns of a record batch, nested ones included, are views; dictViews those of dictionaries by
	// id.
	views     int
	dictViews map[int64]int
}

// ErrCutShort is returned when a stream ends without its end marker.
var ErrCutShort = errors.New("the Arrow stream ends without its end marker: it was cut short")

// Message returns the next message, valid until the next call, and io.EOF at the end marker.
func (m *messageReader) Message() (*ipc.Message, error) {
	if m.ended {
		return nil, io.EOF
	}
	length, err := m.prefix()
	if err != nil {
		return nil, err
	}
	if length == 0 {
		m.ended = true
		return nil, m.end()
	}
	if length < 0 || int64(length) > m.limits.BlockBytes {
		return nil, fmt.Errorf("an Arrow message with metadata of %d bytes", length)
	}
	meta, err := m.read(int64(length))
	if err != nil {
		return nil, err
	}
	head, err := parseMessage(meta)
	if err != nil {
		return nil, err
	}
	if head.body < 0 || head.body > m.limits.BlockBytes {
		return nil, fmt.Errorf("an Arrow message with a body of %d bytes, the limit is %d: write smaller record "+
			"batches",
			head.body, m.limits.BlockBytes)
	}
	body, err := m.read(head.body)
	if err != nil {
		return nil, err
	}
	if err := head.check(body, m.limits); err != nil {
		return nil, err
	}
	// The library reads a count for each view, also past the end of the counts.
	switch need := m.views; head.typ {
	case headerSchema:
		m.views, m.dictViews = head.views, head.dictViews
	case headerDictionary:
		need = m.dictViews[head.id]
		fallthrough
	default:
		if head.counts >= 0 && head.counts < need {
			return nil, errDamagedMessage
		}
	}
	m.bytes = head.bytes
	if m.msg != nil {
		m.msg.Release()
	}
	m.msg = ipc.NewMessage(memory.NewBufferBytes(meta), memory.NewBufferBytes(body))
	return m.msg, nil
}

// prefix returns the length of the next message's metadata, 0 at the end marker.
func (m *messageReader) prefix() (int32, error) {
	var b [4]byte
	if _, err := io.ReadFull(m.r, b[:]); err != nil {
		return 0, cutShort(err)
	}
	if binary.LittleEndian.Uint32(b[:]) == math.MaxUint32 {
		if _, err := io.ReadFull(m.r, b[:]); err != nil {
			return 0, cutShort(err)
		}
	}
	return int32(binary.LittleEndian.Uint32(b[:])), nil
}

func cutShort(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCutShort
	}
	return err
}

// read returns the next n bytes. Memory grows with what really arrives.
func (m *messageReader) read(n int64) ([]byte, error) {
	const step = 4 << 20
	buf := make([]byte, min(n, step))
	for at := int64(0); ; {
		if _, err := io.ReadFull(m.r, buf[at:]); err != nil {
			return nil, cutShort(err)
		}
		at = int64(len(buf))
		if at == n {
			return buf, nil
		}
		grown := make([]byte, min(n, 2*at))
		copy(grown, buf)
		buf = grown
	}
}

// end checks what follows the end marker: nothing, or a file's footer.
func (m *messageReader) end() error {
	if !m.file {
		switch _, err := m.r.ReadByte(); err {
		case io.EOF:
			return io.EOF
		case nil:
			return errors.New("bytes after the end marker of the Arrow stream")
		default:
			return err
		}
	}
	// footer, its length (4 LE), ARROW1
	tail := make([]byte, 0, 64<<10)
	total := int64(0)
	buf := make([]byte, 32<<10)
	for {
		n, err := m.r.Read(buf)
		total += int64(n)
		tail = append(tail, buf[:n]...)
		if len(tail) > 10 {
			tail = append(tail[:0], tail[len(tail)-10:]...)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if len(tail) < 10 || string(tail[4:]) != "ARROW1" || int64(binary.LittleEndian.Uint32(tail)) > total-10 {
		return errors.New("the Arrow file ends without its footer: it was cut short")
	}
	return io.EOF
}

// Retain does nothing: the reader has one owner.
func (m *messageReader) Retain() {}

// Release frees the current message.
func (m *messageReader) Release() {
	if m.msg != nil {
		m.msg.Release()
		m.msg = nil
	}
}

// A messageHead is what we read of a message's metadata ourselves, to bound what the library allocates for it.
type messageHead struct {
	typ        byte
	body       int64
	rows       int64
	bytes      int64 // of the body, decompressed
	compressed bool
	buffers    []bufferSpan
	id         int64 // of a dictionary
	counts     int   // of the buffers of each view; -1: the message has none
	// Of a schema: see messageReader.
	views     int
	dictViews map[int64]int
}

type bufferSpan struct{ offset, length int64 }

// Members of the MessageHeader union.
const (
	headerSchema      = 1
	headerDictionary  = 2
	headerRecordBatch = 3
)

// parseMessage reads the flatbuffer of a message, and checks what the library relies on: that each vector lies within
// it.
//
//	Message        0 version · 1 header type · 2 header · 3 body length · 4 metadata
//	RecordBatch    0 length · 1 nodes · 2 buffers (offset 8, length 8 each) · 3 compression · 4 buffers of each view
//	Dictionary     0 id · 1 data: RecordBatch · 2 is delta
//	Schema         0 endianness · 1 fields · 2 metadata
//	Field          0 name · 1 nullable · 2, 3 type · 4 dictionary · 5 children · 6 metadata
func parseMessage(meta []byte) (h *messageHead, err error) {
	defer func() {
		if recover() != nil { // an offset that leads out of the message
			h, err = nil, errDamagedMessage
		}
	}()
	root := &flatTable{flatbuffers.Table{Bytes: meta, Pos: flatbuffers.GetUOffsetT(meta)}}
	h = &messageHead{body: root.GetInt64Slot(slot(3), 0), typ: root.GetByteSlot(slot(1), 0), counts: -1}
	root.vector(4, 4)
	header := root.child(2)
	if h.typ == headerDictionary && header != nil {
		h.id = header.GetInt64Slot(slot(0), 0)
		header = header.child(1)
	}
	switch {
	case header == nil:
	case h.typ == headerSchema:
		left := maxArrowFields
		header.vector(2, 4)
		h.dictViews = map[int64]int{}
		h.views, err = header.checkFields(1, 0, &left, h.dictViews)
		return h, err
	case h.typ == headerDictionary || h.typ == headerRecordBatch:
		h.rows = header.GetInt64Slot(slot(0), 0)
		h.compressed = header.child(3) != nil
		n, at := header.vector(2, 16)
		for i := range n {
			h.buffers = append(h.buffers, bufferSpan{header.GetInt64(at + 16*i), header.GetInt64(at + 16*i + 8)})
		}
		header.vector(1, 16)
		views, at := header.vector(4, 8)
		if header.Offset(slot(4)) != 0 {
			h.counts = int(views)
		}
		for i := range views {
			if v := header.GetInt64(at + 8*i); v < 0 || v > int64(n) {
				return nil, errDamagedMessage
			}
		}
	}
	return h, nil
}

var errDamagedMessage = errors.New("an Arrow message whose metadata is damaged")

// maxArrowFields bounds the fields of a schema, nested ones included: the tables of a flatbuffer may be shared, so that
// few bytes could stand for any number.
const maxArrowFields = 1 << 22

// A flatTable is a table of a flatbuffer. What leads out of the buffer panics.
type flatTable struct{ flatbuffers.Table }

// slot is where the vtable says where field i is.
func slot(i int) flatbuffers.VOffsetT { return flatbuffers.VOffsetT(4 + 2*i) }

// child returns the table that field i refers to, nil where there is none.
func (t *flatTable) child(i int) *flatTable {
	if t == nil {
		return nil
	}
	o := t.Offset(slot(i))
	if o == 0 {
		return nil
	}
	return &flatTable{flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Pos + flatbuffers.UOffsetT(o))}}
}

// vector returns how many elements of a size the vector in field i has, and where they start.
func (t *flatTable) vector(i, size int) (n, at flatbuffers.UOffsetT) {
	o := flatbuffers.UOffsetT(t.Offset(slot(i)))
	if o == 0 {
		return 0, 0
	}
	count := t.VectorLen(o)
	at = t.Vector(o)
	_ = t.Bytes[at:][:count*size]
	return flatbuffers.UOffsetT(count), at
}

// Types of a field whose number of buffers is in each batch.
const (
	typeBinaryView = 23
	typeStringView = 24
)

// checkFields checks the fields in field i of a schema or of a field, and those in them. It counts their views: those
// of dictionaries by their ids.
func (t *flatTable) checkFields(i, depth int, left *int, dictViews map[int64]int) (views int, err error) {
	n, at := t.vector(i, 4)
	if *left -= int(n); depth > maxArrowDepth {
		return 0, fmt.Errorf("its schema is nested deeper than %d", maxArrowDepth)
	} else if *left < 0 {
		return 0, errDamagedMessage
	}
	for k := range n {
		field := &flatTable{flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at + 4*k)}}
		field.vector(6, 4)
		in, err := field.checkFields(5, depth+1, left, dictViews)
		if err != nil {
			return 0, err
		}
		if typ := field.GetByteSlot(slot(2), 0); typ == typeBinaryView || typ == typeStringView {
			in++
		}
		if d := field.child(4); d != nil {
			id := d.GetInt64Slot(slot(0), 0)
			dictViews[id], in = max(dictViews[id], in), 0
		}
		views += in
	}
	return views, nil
}

// check verifies that the buffers lie within the body and bounds what they become.
func (h *messageHead) check(body []byte, limits *column.Limits) error {
	if h.rows < 0 || h.rows > math.MaxInt32 {
		return fmt.Errorf("an Arrow batch of %d rows", h.rows)
	}
	for _, b := range h.buffers {
		if b.offset < 0 || b.length < 0 || b.offset > int64(len(body)) || b.length > int64(len(body))-b.offset {
			return fmt.Errorf("an Arrow buffer of bytes [%d, %d) in a body of %d", b.offset, b.offset+b.length,
				len(body))
		}
		size := b.length
		if h.compressed && b.length > 0 {
			// The length of the decompressed bytes, or -1 for bytes that are not compressed, comes first.
			if b.length < 8 {
				return fmt.Errorf("a compressed Arrow buffer of %d bytes", b.length)
			}
			if size = int64(binary.LittleEndian.Uint64(body[b.offset:])); size == -1 {
				size = b.length - 8
			}
		}
		if size < 0 || size > limits.BlockBytes-h.bytes {
			return fmt.Errorf("an Arrow batch of more than %d bytes decompressed: write smaller record batches",
				limits.BlockBytes)
		}
		h.bytes += size
	}
	return nil
}
