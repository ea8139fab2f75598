package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/page"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/thrift"
)

// TestAlwaysCompressed: parquet-cpp before 2.0 wrote compressed pages whose headers say that they are not.
func TestAlwaysCompressed(t *testing.T) {
	b := arrowarray.NewRecordBuilder(memory.DefaultAllocator,
		arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil))
	defer b.Release()
	want := ""
	for range 50 {
		b.Field(0).(*arrowarray.Int64Builder).Append(7)
		want += "a=7\n"
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	for _, writer := range []string{"parquet-cpp version 1.5.1-SNAPSHOT", "parquet-cpp-arrow version 1.5.1"} {
		data, err := writeParquet(rec, parquet.WithDataPageVersion(parquet.DataPageV2),
			parquet.WithCompression(compress.Codecs.Snappy),
			parquet.WithDictionaryDefault(false), parquet.WithStats(false), parquet.WithCreatedBy(writer))
		if err != nil {
			t.Fatal(err)
		}
		h, n, err := page.ParseHeader(data[4:])
		if err != nil || !h.IsCompressed {
			t.Fatalf("%+v, %v", h, err)
		}
		// The inner struct ends with statistics, which are empty: field 7, is_compressed, takes their place, as false.
		if !bytes.HasSuffix(data[:4+n], []byte{0x2c, 0, 0, 0}) {
			t.Fatalf("%x", data[4:4+n])
		}
		copy(data[n:], []byte{thrift.False, 7 << 1, 0, 0})
		if h, _, err := page.ParseHeader(data[4:]); err != nil || h.IsCompressed {
			t.Fatalf("%+v, %v", h, err)
		}
		chunks, err := readBytes(t, "x.parquet", data, Options{})
		if old := !strings.Contains(writer, "arrow"); old && (err != nil || dump(chunks) != want) || !old &&
			err == nil {
			t.Errorf("%s: %q, %v", writer, dump(chunks), err)
		}
	}
}

// TestNoName: a column without a name is no key that nobody asked for, and needs a name.
func TestNoName(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.jsonl": `{"":"x","b":1}`, "m.json": `{"columns": {"": {"rename": "a"}}}`})
	if _, err := readPath(t, dir+"/a.jsonl", Options{}); err == nil ||
		!strings.Contains(err.Error(), `column without a name: give it one with {"columns": {"": {"rename"`) {
		t.Errorf("got %v", err)
	}
	chunks, err := readPath(t, dir+"/a.jsonl", Options{MappingFile: dir + "/m.json"})
	if err != nil || dump(chunks) != "a=\"x\" b=1\n" || chunks[0].Fields[0].Role != 0 {
		t.Errorf("got %q, %v", dump(chunks), err)
	}
}

// TestFooterRefusals names the column for which the library makes no schema.
func TestFooterRefusals(t *testing.T) {
	element := func(parts ...byte) []byte { return append(parts, 0) }
	named := func(name string) []byte { return append([]byte{byte(len(name))}, name...) }
	root := element(append([]byte{0x48}, append(named("schema"), 0x15, 2)...)...) // name, one child
	for _, tc := range []struct {
		name, want string
		element    []byte
	}{
		{"a converted type", `column "x": its converted type INT_64 does not go with its physical type INT32; ` +
			`drop it with {"columns": {"x": {"drop": true}}} in a mapping file`,
			element(append([]byte{0x15, 2, 0x25, 0, 0x18}, append(named("x"), 0x25, 18<<1)...)...)},
		{"an interval that is called UNKNOWN too",
			`column "x": its logical type INTERVAL has no place in a table; drop it with {"columns": {"x": ` +
				`{"drop": true}}} in a mapping file`,
			element(append([]byte{0x15, 7 << 1, 0x15, 12 << 1, 0x15, 0, 0x18}, append(named("x"), 0x25, 21<<1, 0x4c,
				0xbc, 0, 0)...)...)},
		{"a group of nothing", `column "x": a struct without members has no values to store; drop it with ` +
			`{"columns": {"x": {"drop": true}}} in a mapping ` +
			`file`, element(append([]byte{0x35, 0, 0x18}, named("x")...)...)},
	} {
		foot := append([]byte{0x15, 2, 0x19, 2<<4 | thrift.Struct}, root...)
		foot = append(append(foot, tc.element...), 0x16, 0, 0x19, thrift.Struct, 0) // no rows, no row groups
		data := append([]byte("PAR1"), foot...)
		data = append(binary.LittleEndian.AppendUint32(data, uint32(len(foot))), "PAR1"...)
		if _, err := readBytes(t, "x.parquet", data, Options{}); err == nil ||
			!strings.HasSuffix(err.Error(), tc.want) || !errors.Is(err, column.ErrRefused) {
			t.Errorf("%s: got %v, want %s", tc.name, err, tc.want)
		}
	}
}

// TestUnknownGroup: Hive's writers say of a map's pairs, besides that they are MAP_KEY_VALUE, that their logical type
// is UNKNOWN.
func TestUnknownGroup(t *testing.T) {
	columns := arrow.NewSchema([]arrow.Field{
		{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil)
	b := arrowarray.NewRecordBuilder(memory.DefaultAllocator, columns)
	defer b.Release()
	m := b.Field(0).(*arrowarray.MapBuilder)
	m.Append(true)
	m.KeyBuilder().(*arrowarray.StringBuilder).Append("k")
	m.ItemBuilder().(*arrowarray.Int32Builder).Append(7)
	m.AppendNull()
	b.Field(1).(*arrowarray.Int64Builder).AppendValues([]int64{1, 2}, nil)
	rec := b.NewRecordBatch()
	defer rec.Release()
	data, err := writeParquet(rec)
	if err != nil {
		t.Fatal(err)
	}
	size := int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	foot := data[len(data)-8-size : len(data)-8]
	pairs := append([]byte("key_value"), 0x15, 2<<1) // its children are two
	at := bytes.Index(foot, append(pairs, 0))
	if at < 0 {
		t.Fatal("the footer is not as this test expects it")
	}
	at += len(pairs)
	// converted_type MAP_KEY_VALUE, and a logicalType that is a union of the field 11, UNKNOWN, an empty struct
	foot = slices.Insert(slices.Clone(foot), at, 0x15, 2<<1, 0x4c, 0xbc, 0, 0)
	data = append(data[:len(data)-8-size:len(data)-8-size], foot...)
	data = append(binary.LittleEndian.AppendUint32(data, uint32(len(foot))), "PAR1"...)
	chunks, err := readBytes(t, "x.parquet", data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := dump(chunks), "m=1 n=1 m.k=7\nm=null n=2 m.k=null\n"; got != want &&
		got != "m=1 m.k=7 n=1\nm=null m.k=null n=2\n" {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
