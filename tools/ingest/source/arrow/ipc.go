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
	// rows and bytes are those of the last record batch.
	rows, bytes int64
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
		return nil, fmt.Errorf("an Arrow message with a body of %d bytes, the limit is %d: write smaller record batches",
			head.body, m.limits.BlockBytes)
	}
	body, err := m.read(head.body)
	if err != nil {
		return nil, err
	}
	if err := head.check(body, m.limits); err != nil {
		return nil, err
	}
	m.rows, m.bytes = head.rows, head.bytes
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
	typ         byte
	body        int64
	rows        int64
	bytes       int64 // of the body, decompressed
	compressed  bool
	buffers     []bufferSpan
	hasContents bool
}

type bufferSpan struct{ offset, length int64 }

// Members of the MessageHeader union.
const (
	headerSchema      = 1
	headerDictionary  = 2
	headerRecordBatch = 3
)

// parseMessage reads the flatbuffer of a message.
//
//	Message        0 version · 1 header type · 2 header · 3 body length
//	RecordBatch    0 length · 1 nodes · 2 buffers (offset 8, length 8 each) · 3 compression
//	Dictionary     0 id · 1 data: RecordBatch · 2 is delta
func parseMessage(meta []byte) (*messageHead, error) {
	f := &flatReader{buf: meta}
	root := f.table(f.u32(0))
	h := &messageHead{body: f.i64(root, 3, 0), typ: byte(f.u8(root, 1))}
	table := f.child(root, 2)
	if h.typ == headerDictionary && table.pos > 0 {
		table = f.child(table, 1)
	}
	if (h.typ == headerDictionary || h.typ == headerRecordBatch) && table.pos > 0 {
		h.hasContents = true
		h.rows = f.i64(table, 0, 0)
		h.compressed = f.child(table, 3).pos > 0
		n, at := f.vector(table, 2, 16)
		for i := range n {
			h.buffers = append(h.buffers, bufferSpan{f.i64at(at + 16*i), f.i64at(at + 16*i + 8)})
		}
	}
	if f.vectorLength(root, 4) < 0 || h.typ == headerSchema && !f.checkSchema(table) || h.hasContents &&
		!f.checkBatch(table, len(h.buffers)) {
		f.bad = true
	}
	if f.deep {
		return nil, fmt.Errorf("its schema is nested deeper than %d", maxArrowDepth)
	}
	if f.bad {
		return nil, errors.New("an Arrow message whose metadata is damaged")
	}
	return h, nil
}

// maxArrowFields bounds the fields of a schema, nested ones included: the tables of a flatbuffer may be shared, so that
// few bytes could stand for any number.
const maxArrowFields = 1 << 22

// checkSchema verifies that every vector of a schema lies within the message, since the library allocates for them.
//
//	Schema    0 endianness · 1 fields · 2 metadata
//	Field     0 name · 1 nullable · 2, 3 type · 4 dictionary · 5 children · 6 metadata
func (f *flatReader) checkSchema(t flatTable) bool {
	left := maxArrowFields
	return f.vectorLength(t, 2) >= 0 && f.checkFields(t, 1, 0, &left)
}

func (f *flatReader) checkFields(t flatTable, i, depth int, left *int) bool {
	n := f.vectorLength(t, i)
	f.deep = f.deep || depth > maxArrowDepth
	if *left -= n; n < 0 || *left < 0 || f.deep {
		return false
	}
	for k := range n {
		p := f.field(t, i)
		p += f.u32(p) + 4 + 4*k
		field := f.table(p + f.u32(p))
		if f.bad || f.vectorLength(field, 6) < 0 || !f.checkFields(field, 5, depth+1, left) {
			return false
		}
	}
	return true
}

// checkBatch verifies the parts of a record batch that check does not see.
func (f *flatReader) checkBatch(t flatTable, buffers int) bool {
	if n, _ := f.vector(t, 1, 16); n < 0 || f.bad {
		return false
	}
	n, at := f.vector(t, 4, 8)
	for k := range n {
		if v := f.i64at(at + 8*k); v < 0 || v > int64(buffers) {
			return false
		}
	}
	return !f.bad
}

// vectorLength returns the length of a vector of offsets, -1 when it does not lie within the message.
func (f *flatReader) vectorLength(t flatTable, i int) int {
	n, _ := f.vector(t, i, 4)
	if f.bad {
		return -1
	}
	return n
}

// check verifies that the buffers lie within the body and bounds what they become.
func (h *messageHead) check(body []byte, limits *column.Limits) error {
	if !h.hasContents {
		return nil
	}
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

// A flatReader reads flatbuffers whose every offset may lie.
type flatReader struct {
	buf []byte
	bad bool
	// deep: a schema is nested deeper than maxArrowDepth.
	deep bool
}

// A flatTable is the position of a table and of its vtable; pos 0: there is none.
type flatTable struct{ pos, vtable, vsize int }

func (f *flatReader) in(at, n int) bool {
	if at < 0 || n < 0 || at > len(f.buf)-n {
		f.bad = true
		return false
	}
	return true
}

func (f *flatReader) u16(at int) int {
	if !f.in(at, 2) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(f.buf[at:]))
}

func (f *flatReader) u32(at int) int {
	if !f.in(at, 4) {
		return 0
	}
	return int(binary.LittleEndian.Uint32(f.buf[at:]))
}

func (f *flatReader) i64at(at int) int64 {
	if !f.in(at, 8) {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(f.buf[at:]))
}

func (f *flatReader) table(pos int) flatTable {
	t := flatTable{pos: pos}
	t.vtable = pos - int(int32(f.u32(pos)))
	t.vsize = f.u16(t.vtable)
	f.in(t.vtable, t.vsize)
	return t
}

// field returns the position of a table's field, 0 when it is not set.
func (f *flatReader) field(t flatTable, i int) int {
	if f.bad || t.pos == 0 || 4+2*i+2 > t.vsize {
		return 0
	}
	if o := f.u16(t.vtable + 4 + 2*i); o != 0 {
		return t.pos + o
	}
	return 0
}

func (f *flatReader) u8(t flatTable, i int) int {
	at := f.field(t, i)
	if at == 0 || !f.in(at, 1) {
		return 0
	}
	return int(f.buf[at])
}

func (f *flatReader) i64(t flatTable, i int, def int64) int64 {
	at := f.field(t, i)
	if at == 0 {
		return def
	}
	return f.i64at(at)
}

func (f *flatReader) child(t flatTable, i int) flatTable {
	at := f.field(t, i)
	if at == 0 {
		return flatTable{}
	}
	return f.table(at + f.u32(at))
}

// vector returns the number of elements of a vector of structs and where they start.
func (f *flatReader) vector(t flatTable, i, size int) (n, at int) {
	p := f.field(t, i)
	if p == 0 {
		return 0, 0
	}
	p += f.u32(p)
	n = f.u32(p)
	if n > len(f.buf)/size || !f.in(p+4, n*size) {
		f.bad = true
		return 0, 0
	}
	return n, p + 4
}
