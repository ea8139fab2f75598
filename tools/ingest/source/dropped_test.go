package source

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/parquet/footer"
)

// membersFile writes two rows of a struct s of an int32 a and 12 bytes b, of which the second is null, and an int64 n.
func membersFile(t *testing.T, props ...parquet.WriterProperty) []byte {
	t.Helper()
	b := arrowarray.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "s", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
			arrow.Field{Name: "b", Type: &arrow.FixedSizeBinaryType{ByteWidth: 12}, Nullable: true},
		)},
		{Name: "n", Type: arrow.PrimitiveTypes.Int64},
	}, nil))
	defer b.Release()
	s := b.Field(0).(*arrowarray.StructBuilder)
	s.Append(true)
	s.FieldBuilder(0).(*arrowarray.Int32Builder).Append(7)
	s.FieldBuilder(1).(*arrowarray.FixedSizeBinaryBuilder).Append([]byte("twelve bytes"))
	s.AppendNull()
	b.Field(1).(*arrowarray.Int64Builder).AppendValues([]int64{1, 2}, nil)
	rec := b.NewRecordBatch()
	defer rec.Release()
	data, err := writeParquet(rec, props...)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// groupOf returns a group of the given children.
func groupOf(name string, kids ...*footer.Element) *footer.Element {
	return &footer.Element{Name: name, Group: true, Physical: -1, Repetition: 1, Converted: -1, Scale: -1,
		Precision: -1, FieldID: -1, Children: kids}
}

// deep wraps e into so many groups.
func deep(e *footer.Element, levels int) *footer.Element {
	for i := range levels {
		e = groupOf(fmt.Sprint("d", i), e)
	}
	return e
}

// TestDroppedParquet: what the mapping drops is not read, whatever it is. Without the mapping it is refused by name.
func TestDroppedParquet(t *testing.T) {
	unknown := []byte{0x0c, 60, 0, 0} // field 30 of the union, an empty struct
	for _, tc := range []struct {
		name    string
		edit    func(root *footer.Element)
		refused string // a path, and why
		drop    string
		want    string
	}{
		{"an interval in a struct", func(r *footer.Element) { r.Children[0].Children[1].Converted = 21 },
			`column "s.b": its logical type INTERVAL`, "s.b", "s=1 s.a=7 n=1\ns=null s.a=null n=2\n"},
		{"an unknown logical type in a struct", func(r *footer.Element) { r.Children[0].Children[1].Logical = unknown },
			`column "s.b": its logical type (number 30 of Parquet's) is unknown`, "s.b",
			"s=1 s.a=7 n=1\ns=null s.a=null n=2\n"},
		{"an unknown logical type", func(r *footer.Element) { r.Children[1].Logical = unknown },
			`column "n": its logical type (number 30`, "n",
			"s=1 s.a=7 s.b=\"twelve bytes\"\ns=null s.a=null s.b=null\n"},
		{"an unknown logical type of a group", func(r *footer.Element) { r.Children[0].Logical = unknown },
			`column "s": its logical type (number 30`, "s", "n=1\nn=2\n"},
		{"an unknown converted type", func(r *footer.Element) { r.Children[1].Converted = 40 },
			`column "n": its converted type (number 40`, "n",
			"s=1 s.a=7 s.b=\"twelve bytes\"\ns=null s.a=null s.b=null\n"},
		{"an unknown physical type", func(r *footer.Element) { r.Children[0].Children[1].Physical = 9 },
			`column "s.b": its physical type (number 9`, "s.b", "s=1 s.a=7 n=1\ns=null s.a=null n=2\n"},
		{"annotations that do not go together", func(r *footer.Element) { r.Children[1].Converted = 15 },
			`column "n": its converted type INT_8 does not go with`, "n",
			"s=1 s.a=7 s.b=\"twelve bytes\"\ns=null s.a=null s.b=null\n"},
		{"a decimal of too many digits", func(r *footer.Element) {
			n := r.Children[1]
			n.Logical, n.Converted, n.Precision, n.Scale = nil, 5, 99, 2
		}, `column "n": `, "n", "s=1 s.a=7 s.b=\"twelve bytes\"\ns=null s.a=null s.b=null\n"},
		{"an empty struct", func(r *footer.Element) {
			r.Children = append([]*footer.Element{groupOf("e")},
				r.Children...)
		}, `column "e": a struct without members`, "e",
			"s=1 s.a=7 s.b=\"twelve bytes\" n=1\ns=null s.a=null s.b=null n=2\n"},
		{"an empty struct in a struct", func(r *footer.Element) {
			r.Children[0].Children = append(r.Children[0].Children, groupOf("e", groupOf("f")))
		}, `column "s.e": a struct without members`, "s.e",
			"s=1 s.a=7 s.b=\"twelve bytes\" n=1\ns=null s.a=null s.b=null n=2\n"},
		{"a column that is nested too deeply", func(r *footer.Element) { r.Children[0] = deep(r.Children[0], 40) },
			`nested deeper than 32`, "d39", "n=1\nn=2\n"},
		{"one that is nested far too deeply", func(r *footer.Element) { r.Children[0] = deep(r.Children[0], 5000) },
			`nested deeper than 32`, "d4999", "n=1\nn=2\n"},
		{"a member that is nested too deeply",
			func(r *footer.Element) { r.Children[0].Children[1] = deep(r.Children[0].Children[1], 40) },
			`nested deeper than 32`, "s.d39", "s=1 s.a=7 n=1\ns=null s.a=null n=2\n"},
		{"all members of a struct", func(r *footer.Element) { r.Children[0].Children[1].Converted = 21 },
			`column "s.b"`, "s.a s.b", "s=1 n=1\ns=null n=2\n"},
	} {
		for i, props := range [][]parquet.WriterProperty{nil, {parquet.WithDataPageVersion(parquet.DataPageV2),
			parquet.WithDictionaryDefault(false)}} {
			data := editSchema(t, membersFile(t, props...), tc.edit)
			if _, err := readBytes(t, "x.parquet", data, Options{}); err == nil || !errors.Is(err, column.ErrRefused) ||
				!strings.Contains(err.Error(), tc.refused) ||
				!strings.Contains(err.Error(), `{"drop": true}`) || !strings.Contains(err.Error(), "x.parquet") {
				t.Errorf("%s, %d: got %v, want a refusal of %s", tc.name, i, err, tc.refused)
			}
			drops := ""
			for i, d := range strings.Fields(tc.drop) {
				drops += strings.Repeat(", ", min(i, 1)) + fmt.Sprintf("%q: {\"drop\": true}", d)
			}
			dir := writeFiles(t, map[string]string{"x.parquet": string(data), "m.json": `{"columns": {` + drops + `}}`})
			chunks, err := readPath(t, filepath.Join(dir, "x.parquet"),
				Options{MappingFile: filepath.Join(dir, "m.json")})
			if got := dump(chunks); err != nil || got != tc.want {
				t.Errorf("%s, %d, dropped: got %q, %v; want %q", tc.name, i, got, err, tc.want)
			}
		}
	}
}

// TestDroppedDamage: the bytes of a column that is dropped may be anything.
func TestDroppedDamage(t *testing.T) {
	data := membersFile(t, parquet.WithDictionaryDefault(false), parquet.WithStats(false))
	at := bytes.Index(data, []byte("twelve bytes"))
	for i := at - 20; i < at+12; i++ {
		data[i] = 0xff
	}
	if _, err := readBytes(t, "x.parquet", data, Options{}); err == nil {
		t.Error("damage was read")
	}
	dir := writeFiles(t, map[string]string{"x.parquet": string(data), "m.json": `{"columns": {"s.b": {"drop": true}}}`})
	chunks, err := readPath(t, filepath.Join(dir, "x.parquet"), Options{MappingFile: filepath.Join(dir, "m.json")})
	if got := dump(chunks); err != nil || got != "s=1 s.a=7 n=1\ns=null s.a=null n=2\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestDroppedElsewhere drops what has no place in Arrow streams, JSON lines and text.
func TestDroppedElsewhere(t *testing.T) {
	b := arrowarray.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32},
			arrow.Field{Name: "i", Type: arrow.FixedWidthTypes.MonthDayNanoInterval})},
		{Name: "e", Type: arrow.StructOf()},
	}, nil))
	defer b.Release()
	s := b.Field(0).(*arrowarray.StructBuilder)
	s.Append(true)
	s.FieldBuilder(0).(*arrowarray.Int32Builder).Append(7)
	s.FieldBuilder(1).(*arrowarray.MonthDayNanoIntervalBuilder).Append(arrow.MonthDayNanoInterval{Days: 1})
	b.Field(1).(*arrowarray.StructBuilder).Append(true)
	rec := b.NewRecordBatch()
	defer rec.Release()
	var stream bytes.Buffer
	w := ipc.NewWriter(&stream, ipc.WithSchema(rec.Schema()))
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	nested := strings.Repeat(`{"x":[`, 50) + strings.Repeat(`]}`, 50)
	for _, tc := range []struct{ name, file, text, ddl, drops, want string }{
		{"Arrow", "a.arrows", stream.String(), "", `"s.i": {"drop": true}, "e": {"drop": true}`, "s=1 s.a=7\n"},
		{"JSON of many types", "a.jsonl",
			`{"a":1,"x":1}` + "\n" + `{"a":2,"x":"y"}` + "\n" + `{"a":3,"x":{"y":[1,"}"]}}`, "", `"x": {"drop": true}`,
			"a=1\na=2\na=3\n"},
		{"JSON, a member of many types", "a.jsonl", `{"s":{"a":1,"x":1}}` + "\n" + `{"s":{"x":"\"","a":2}}`, "",
			`"s.x": {"drop": true}`, "s=1 s.a=1\ns=1 s.a=2\n"},
		{"JSON that is nested too deeply", "a.jsonl",
			`{"a":1,"x":` + nested + `}` + "\n" + `{"s":{"x":` + nested + `, "a":2}}`, "",
			`"x": {"drop": true}, "s.x": {"drop": true}`,
			"a=1 s=null s.a=null\na=null s=1 s.a=2\n"},
		{"JSON, an empty object", "a.jsonl", `{"a":1,"x":{}}`, "", `"x": {"drop": true}`, "a=1\n"},
		{"text", "a.txt", "1\x01x\x012\n",
			"CREATE TABLE t (a int, g geometry(4326), l array<frob<int>> COMMENT 'x', b int)",
			`"g": {"drop": true}, "l": {"drop": true}`, "a=1 b=null\n"},
		{"text, a member", "a.txt", "1\x02x\n", "CREATE TABLE t (s struct<a:int,u:uniontype<int,string>>)",
			`"s.u": {"drop": true}`, "s=1 s.a=1\n"},
	} {
		dir := writeFiles(t, map[string]string{tc.file: tc.text, "t.sql": tc.ddl,
			"m.json": `{"columns": {` + tc.drops + `}}`})
		opts := Options{}
		if tc.ddl != "" {
			opts.DDLFile = filepath.Join(dir, "t.sql")
		}
		if _, err := readPath(t, filepath.Join(dir, tc.file), opts); err == nil {
			t.Errorf("%s was read with nothing dropped", tc.name)
		}
		opts.MappingFile = filepath.Join(dir, "m.json")
		chunks, err := readPath(t, filepath.Join(dir, tc.file), opts)
		if got := dump(chunks); err != nil || got != tc.want {
			t.Errorf("%s: got %q, %v; want %q", tc.name, got, err, tc.want)
		}
	}
}

// TestDroppedEncryption: columns that are encrypted can be dropped where the footer is not.
func TestDroppedEncryption(t *testing.T) {
	path := filepath.Join(corpusRoot(t),
		"parquet/parquet-testing/data/encrypt_columns_plaintext_footer.parquet.encrypted")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Skip(err)
	}
	_, err = readBytes(t, "x.parquet", data, Options{})
	if err == nil || !errors.Is(err, column.ErrRefused) || !strings.Contains(err.Error(), `"double_field"`) ||
		!strings.Contains(err.Error(), `"float_field"`) || !strings.Contains(err.Error(), "encrypted") {
		t.Errorf("got %v", err)
	}
	dir := writeFiles(t, map[string]string{"x.parquet": string(data),
		"m.json": `{"columns": {"double_field": {"drop": true}, "float_field": {"drop": true}, "int96_field": ` +
			`{"drop": true}}}`})
	chunks, err := readPath(t, filepath.Join(dir, "x.parquet"), Options{MappingFile: filepath.Join(dir, "m.json")})
	if got := dump(chunks); err != nil || strings.Count(got, "\n") != 50 ||
		!strings.HasPrefix(got, "boolean_field=1 int32_field=0 int64_field=[0,1000000000000]") {
		t.Errorf("got %.200s, %v", got, err)
	}
}
