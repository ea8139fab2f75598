package source

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

func utf16Text(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// TestEncodings: text in other encodings is read by its byte order mark, or as the mapping file says.
func TestEncodings(t *testing.T) {
	long := strings.Repeat("é😀", 3000) // more than a reader converts at once, characters of 2 and of 4 bytes
	for _, tc := range []struct{ name, encoding, text, want string }{
		{"latin1", "latin1", "n\xe4me,b\r\n\x80,\xff\x81\r\n", "näme=\"€\" b=\"ÿ\ufffd\"\n"},
		{"UTF-16 of little ends by its mark", "", utf16Text(binary.LittleEndian, "\ufeffa,b\n"+long+",1\n"),
			"a=\"" + long + "\" b=\"1\"\n"},
		{"UTF-16 of big ends by its mark", "latin1", utf16Text(binary.BigEndian, "\ufeffa,b\r\nx,1\r\n"),
			"a=\"x\" b=\"1\"\n"},
		{"UTF-16 without a mark", "UTF-16LE", utf16Text(binary.LittleEndian, "a\nx\n"), "a=\"x\"\n"},
		{"half of a pair", "utf-16le", utf16Text(binary.LittleEndian, "a\nx") + "\x3d\xd8\n\x00", "a=\"x\ufffd\"\n"},
		{"cut short", "utf-16le", utf16Text(binary.LittleEndian, "a\nx\n") + "y",
			"line 3: text in UTF-16 of an odd number of bytes"},
		{"a mark of UTF-8", "", "\xef\xbb\xbfa\nx\n", "a=\"x\"\n"},
		{"no encoding", "ebcdic", "a\n", `encoding "ebcdic" is none of big5, euc-jp, euc-kr, gb18030, gbk, ` +
			`iso-8859-1, iso-8859-2, koi8-r, latin1, shift-jis, utf-16be`},
		{"GBK", "GBK", "\xc3\xfb,b\n\xd6\xd0|\x81\x5c,1\n", "名=\"中|乗\" b=\"1\"\n"},
		{"GB2312", "gb2312", "a\n\xd6\xd0\n", "a=\"中\"\n"},
		{"GB18030", "GB18030", "a\n\x94\x39\xfc\x36\n", "a=\"😀\"\n"},
		{"Big5", "Big5", "a,b\n\xb3\x5c,1\n", "a=\"許\" b=\"1\"\n"},
		{"Shift-JIS", "Shift_JIS", "a,b\n\x83\x5c\x95\x5c,1\n", "a=\"ソ表\" b=\"1\"\n"},
		{"EUC-JP", "euc-jp", "a\n\xc6\xfc\n", "a=\"日\"\n"},
		{"EUC-KR", "EUC-KR", "a\n\xb0\xa1\n", "a=\"가\"\n"},
		{"cp1251", "cp1251", "a\n\xcf\xf0\x98\n", "a=\"Пр\ufffd\"\n"},
		{"KOI8-R", "koi8-r", "a\n\xd0\xd2\n", "a=\"пр\"\n"},
		{"lines of old Macs", "", "a,b\r1,\"x\ry\"\r2,z\r", "a=\"1\" b=\"x\\ry\"\na=\"2\" b=\"z\"\n"},
		{"one line of an old Mac", "", "a\r", ""},
		{"a carriage return within lines", "", "a\nx\ry\n", "a=\"x\\ry\"\n"},
	} {
		encoding := ""
		if tc.encoding != "" {
			encoding = `, "encoding": "` + tc.encoding + `"`
		}
		dir := writeFiles(t, map[string]string{"m.json": `{"text": {"quote": "\"", "header": true` + encoding + `}}`,
			"a.csv": tc.text})
		chunks, err := readPath(t, filepath.Join(dir, "a.csv"), Options{MappingFile: filepath.Join(dir, "m.json")})
		if got := dump(chunks); (err != nil || got != tc.want) && (err == nil ||
			!strings.Contains(err.Error(), tc.want) || tc.want == "") {
			t.Errorf("%s: got %.200q, %v; want %.200q", tc.name, got, err, tc.want)
		}
	}
}

// TestJSONOfOldMacs: JSON has no carriage return in a value, so that one alone ends lines too.
func TestJSONOfOldMacs(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.jsonl": "{\"a\":1}\r{\"a\":\"\\r\"}",
		"b.jsonl": "{\"b\":1,\r\n\"c\":2}\n"})
	if _, err := readPath(t, filepath.Join(dir, "a.jsonl"), Options{}); err == nil ||
		!strings.Contains(err.Error(), "line 2: a string where lines before it have a number") {
		t.Errorf("got %v", err)
	}
	if _, err := readPath(t, filepath.Join(dir, "b.jsonl"), Options{}); err == nil ||
		!strings.Contains(err.Error(),
			"line 1: the line ends where a key should be: JSON lines have an object a line; jq -c") {
		t.Errorf("got %v", err)
	}
}

// TestNamesOfNoFeature: a name that a table does not take is told with the file.
func TestNamesOfNoFeature(t *testing.T) {
	long := strings.Repeat("x", 4097)
	for text, want := range map[string]string{
		`{"` + long + `": 1}`: `a.jsonl: column "` + long + `": a name of 4097 bytes: want at most 4096 of ` +
			`UTF-8`,
		`{"m": {"` + long + `": 1}}`: `a name of 4099 bytes`,
		`{"` + long[1:] + `": 1}`:    "",
	} {
		dir := writeFiles(t, map[string]string{"a.jsonl": text,
			"m.json": `{"columns": {"m": {"map": "explode", "optional": true}}}`})
		_, err := readPath(t, filepath.Join(dir, "a.jsonl"), Options{MappingFile: filepath.Join(dir, "m.json")})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.20s: got %v, want %s", text, err, want)
		}
	}
}
