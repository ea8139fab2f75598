package golden

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// A row of the model: values by feature as encoding/json has them. What is not there, or nil, is null.
type row map[string]any

// A table of the model: its rows by the number that the feature "row" has.
type table map[int]row

func (t table) clone() table {
	out := table{}
	for n, r := range t {
		out[n] = maps.Clone(r)
	}
	return out
}

// where returns the rows that a condition holds for.
func (t table) where(holds func(r row) bool) table {
	out := table{}
	for n, r := range t {
		if holds(r) {
			out[n] = r
		}
	}
	return out
}

// without returns the other rows.
func (t table) without(holds func(r row) bool) table {
	return t.where(func(r row) bool { return !holds(r) })
}

// add adds rows.
func (t table) add(rows []row) {
	for _, r := range rows {
		t[r["row"].(int)] = r
	}
}

// jsonLines returns rows as a file of JSON lines, with these columns; nil: all.
func jsonLines(rows []row, columns ...string) string {
	var b strings.Builder
	for _, r := range rows {
		out := r
		if columns != nil {
			out = row{}
			for _, c := range columns {
				out[c] = r[c]
			}
		}
		text, err := json.Marshal(out)
		if err != nil {
			panic(err)
		}
		b.Write(append(text, '\n'))
	}
	return b.String()
}

// sorted returns the rows in the order of their numbers.
func (t table) sorted() []row {
	out := make([]row, 0, len(t))
	for _, n := range slices.Sorted(maps.Keys(t)) {
		out = append(out, t[n])
	}
	return out
}

// write writes the rows, packed, as the file of a view.
func (t table) write(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(z, jsonLines(t.sorted())); err != nil {
		return err
	}
	return z.Close()
}

// mapping says what the columns of the rows are.
const mapping = `{"columns": {
	"row": {"type": "bigint", "role": "request_key"}, "session": {"type": "bigint", "role": "session_key"},
	"time": {"type": "bigint", "role": "time_key"}, "user": {"type": "string", "role": "user_key"},
	"click": {"type": "tinyint", "role": "label"},
	"flag": {"type": "boolean"}, "i8": {"type": "tinyint"}, "i16": {"type": "smallint"}, "i32": {"type": "int"},
	"i64": {"type": "bigint"}, "skewed": {"type": "bigint"}, "price": {"type": "float"}, "ratio": {"type": "double"},
	"gauss": {"type": "float"}, "word": {"type": "string"}, "raw": {"type": "binary"}, "ids": {"type": "array<bigint>"},
	"history": {"type": "array<bigint>"}, "numbers": {"type": "array<float>"}, "same_a": {"type": "array<bigint>"},
	"same_b": {"type": "array<bigint>"}, "same_c": {"type": "int"},
	"scored": {"type": "map<bigint,float>", "map": "weighted"},
	"vector": {"type": "array<float>", "kind": "embedding", "dim": 4}
}}`

// A source draws rows: a session has up to 6, whose histories move on by one id, and what is about the user stays.
type source struct {
	rnd  *rand.Rand
	rows int
}

func (s *source) draw(n int, days ...string) []row {
	var out []row
	for len(out) < n {
		session := 1000 + len(out)/3 + 7*s.rows
		history := s.ids(12)
		user := fmt.Sprint("user-", s.rnd.IntN(40))
		shared := row{"word": s.word(), "same_a": s.ids(5), "same_b": s.ids(3), "same_c": s.rnd.IntN(1e6),
			"ids": s.ids(6), "vector": s.floats(4), "scored": s.scores()}
		day := days[s.rnd.IntN(len(days))]
		for i := range 1 + s.rnd.IntN(6) {
			if len(out) == n {
				break
			}
			s.rows++
			history = append([]int{s.rnd.IntN(50_000)}, history[:11]...)
			r := row{
				"row": s.rows, "session": session, "time": 1_760_000_000_000 + 1000*s.rows + 13*i, "user": user,
				"day": day, "click": s.rnd.IntN(2), "flag": s.rnd.IntN(3) > 0, "i8": s.rnd.IntN(256) - 128,
				"i16": s.rnd.IntN(1<<16) - 1<<15, "i32": int(int32(s.rnd.Uint32())), "i64": int64(s.rnd.Uint64()),
				"skewed": s.skewed(), "price": float64(s.rnd.IntN(10_000)) / 100, "ratio": s.rnd.NormFloat64(),
				"gauss": float32(s.rnd.NormFloat64()), "raw": s.bytes(), "numbers": s.floats(s.rnd.IntN(4)),
				"history": slices.Clone(history),
			}
			maps.Copy(r, shared)
			for _, name := range []string{"flag", "i32", "i64", "price", "gauss", "raw", "numbers"} {
				if s.rnd.IntN(8) == 0 {
					r[name] = nil
				}
			}
			if s.rnd.IntN(10) == 0 {
				r["ids"], r["scored"] = []int{}, nil
			}
			out = append(out, r)
		}
	}
	return out
}

func (s *source) ids(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = s.rnd.IntN(50_000)
	}
	return out
}

func (s *source) floats(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = s.rnd.Float32()
	}
	return out
}

// scores draws a map from ids to scores.
func (s *source) scores() map[string]float32 {
	out := map[string]float32{}
	for range s.rnd.IntN(4) {
		out[fmt.Sprint(s.rnd.IntN(1000))] = s.rnd.Float32()
	}
	return out
}

// skewed draws a number that is mostly one of few.
func (s *source) skewed() int {
	if s.rnd.IntN(5) > 0 {
		return s.rnd.IntN(3)
	}
	return s.rnd.IntN(1 << 40)
}

func (s *source) word() string {
	return []string{"", "ape", "bee", "cat", "élan", "a longer text, of which there are few"}[s.rnd.IntN(6)]
}

// bytes draws bytes, which JSON has as base64.
func (s *source) bytes() []byte {
	return bytes.Repeat([]byte{byte(s.rnd.IntN(256)), 0, 0xff}, s.rnd.IntN(4))
}

// shapes draws rows whose columns have the shapes that codecs are made for.
func (s *source) shapes(first, n int) []row {
	out := make([]row, n)
	cycle := s.floats(37)
	for i := range out {
		r := row{
			"row": first + i, "one": 7, "near": 1_000_000 + s.rnd.IntN(500),
			"few":     []int{5, 90_000, 1 << 40}[s.rnd.IntN(3)],
			"outlier": s.rnd.IntN(8), "any": int64(s.rnd.Uint64()), "run": i / 50 * 977 % 31, "skewed": s.skewed(),
			"class": int(s.rnd.ExpFloat64() * 4), "cents": float64(s.rnd.IntN(100_000)) / 100,
			"cycle": cycle[i%len(cycle)], "gauss": s.rnd.NormFloat64(), "word": s.word(),
			"hex":  fmt.Sprintf("%x", s.rnd.Uint64()),
			"text": fmt.Sprintf("/ads/%d/banner?size=%d", s.rnd.IntN(90), s.rnd.IntN(1000)),
			"list": s.ids(s.rnd.IntN(3)),
		}
		if s.rnd.IntN(100) == 0 {
			r["outlier"] = s.rnd.IntN(1 << 50)
			r["rare"] = s.rnd.IntN(100)
		}
		if i/300%2 == 0 {
			r["half"] = i
		}
		out[i] = r
	}
	return out
}
