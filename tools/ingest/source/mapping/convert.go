package mapping

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// A converter turns an array into the column of one feature, entry by entry.
type converter struct {
	t       vector.Type
	logical string
	// column reports entries that have no place through bad; what it puts in their place does not matter, but the
	// column is valid and has a.Len rows.
	column func(a *column.Array, bad func(entry int, err error)) *vector.Column
}

// HashString returns the id that a mapping's hash gives a string: the upper 63 bits of its xxhash64, so that ids are
// not negative.
func HashString(s []byte) int64 { return int64(xxhash.Sum64(s) >> 1) }

// errNoPlace is matched by the converter's errors about types that no mapping file makes a feature of.
var errNoPlace = errors.New("have no place in a table")

// converter chooses the feature that values of type n become, as cm wants it. Its errors say what to do.
func (b *Binder) converter(n *column.Type, cm *Column) (*converter, error) {
	switch n.Shape {
	case column.Null:
		t := vector.Type{Kind: vector.Dense, Elem: vector.Bool}
		return &converter{t: t, column: func(a *column.Array, _ func(int, error)) *vector.Column {
			c := vector.NewColumn(t)
			c.AppendNulls(a.Len)
			return c
		}}, nil
	case column.Number:
		return denseConverter(n, cm)
	case column.Bytes, column.String:
		return stringConverter(n, cm)
	case column.List, column.FixedList:
		if n.Children[0].Shape == column.Struct {
			return weightedConverter(n, n.Children[0].Children, cm)
		}
		return listConverter(n, cm)
	case column.Map:
		return weightedConverter(n, n.Children, cm)
	}
	return nil, fmt.Errorf("values of type %v %w", n, errNoPlace)
}

// newColumn returns a column of the rows of a, without values.
func newColumn(t vector.Type, a *column.Array) *vector.Column {
	c := vector.NewColumn(t)
	c.Rows, c.Slots, c.Present = a.Len, a.Len, presence(a)
	return c
}

func unexpected(cm *Column, n *column.Type, kinds ...vector.Kind) error {
	if cm.Kind == 0 || slices.Contains(kinds, cm.Kind) {
		return nil
	}
	how := ""
	if n.Shape == column.String && slices.Contains([]vector.Kind{vector.Sparse, vector.Embedding}, cm.Kind) {
		how = `; in CSV and text, "type": "array<bigint>" in a mapping file reads lists such as [1, 2], and with ` +
			`{"text": {"items": "|"}} also 1|2`
	}
	return fmt.Errorf("values of type %v cannot be %v%s", n, cm.Kind, how)
}

func denseConverter(n *column.Type, cm *Column) (*converter, error) {
	if err := unexpected(cm, n, vector.Dense); err != nil {
		return nil, err
	}
	if cm.Hash {
		return nil, fmt.Errorf("hash makes ids of strings, not of %v", n)
	}
	cast, err := castTo(n, cm)
	if err != nil {
		return nil, err
	}
	t := vector.Type{Kind: vector.Dense, Elem: cast.elem}
	return &converter{t: t, logical: cast.logical, column: func(a *column.Array, bad func(int, error)) *vector.Column {
		ReportFaults(a, bad)
		c := newColumn(t, a)
		c.Ints, c.Floats, c.Doubles = cast.apply(a, bad)
		if c.Present != nil {
			if a.Borrowed {
				c.Ints, c.Floats, c.Doubles = slices.Clone(c.Ints), slices.Clone(c.Floats), slices.Clone(c.Doubles)
			}
			for i, w := range c.Present {
				for w = ^w; w != 0; w &= w - 1 {
					if at := 64*i + bits.TrailingZeros64(w); at < a.Len {
						clearNumber(c, at)
					}
				}
			}
		}
		return c
	}}, nil
}

func clearNumber(c *vector.Column, i int) {
	switch {
	case c.Ints != nil:
		c.Ints[i] = 0
	case c.Floats != nil:
		c.Floats[i] = 0
	case c.Doubles != nil:
		c.Doubles[i] = 0
	}
}

func stringConverter(n *column.Type, cm *Column) (*converter, error) {
	if cm.Hash {
		if err := unexpected(cm, n, vector.Dense); err != nil {
			return nil, err
		}
		t := vector.Type{Kind: vector.Dense, Elem: vector.Int64}
		return &converter{t: t, column: func(a *column.Array, bad func(int, error)) *vector.Column {
			ReportFaults(a, bad)
			c := newColumn(t, a)
			c.Ints = hashes(a)
			return c
		}}, nil
	}
	if err := unexpected(cm, n, vector.Bytes, vector.String); err != nil {
		return nil, err
	}
	if cm.Elem != 0 {
		return nil, fmt.Errorf("values of type %v cannot be of elem %v; \"hash\": true makes ids of them", n, cm.Elem)
	}
	t := vector.Type{Kind: vector.String}
	if n.Shape == column.Bytes && cm.Kind != vector.String || cm.Kind == vector.Bytes {
		t.Kind = vector.Bytes
	}
	logical := n.Logical
	if cm.Kind != 0 {
		logical = ""
	}
	return &converter{t: t, logical: logical, column: func(a *column.Array, bad func(int, error)) *vector.Column {
		ReportFaults(a, bad)
		if t.Kind == vector.String {
			NotUTF8(a, func(row int) { bad(row, errNotUTF8) })
		}
		a = column.CompactLists(a)
		c := newColumn(t, a)
		c.Offsets, c.Data = a.Offsets, a.Data
		return c
	}}, nil
}

var errNotUTF8 = errors.New("a string that is not UTF-8; in a mapping file \"kind\": \"bytes\" takes any bytes, and " +
	"{\"text\": {\"encoding\": \"latin1\"}} says what text files are in")

// NotUTF8 calls bad with the entries of an array of strings that are not UTF-8.
func NotUTF8(a *column.Array, bad func(int)) {
	if utf8.Valid(a.Data) {
		// Valid as a whole: each string is, when none starts within a character.
		whole := true
		for _, o := range a.Offsets[:a.Len] {
			if int(o) < len(a.Data) && !utf8.RuneStart(a.Data[o]) {
				whole = false
				break
			}
		}
		if whole {
			return
		}
	}
	for i := range a.Len {
		if !a.IsNull(i) && !utf8.Valid(a.Data[a.Offsets[i]:a.Offsets[i+1]]) {
			bad(i)
		}
	}
}

func hashes(a *column.Array) []int64 {
	out := make([]int64, a.Len)
	for i := range out {
		if !a.IsNull(i) {
			out[i] = HashString(a.Data[a.Offsets[i]:a.Offsets[i+1]])
		}
	}
	return out
}

func listConverter(n *column.Type, cm *Column) (*converter, error) {
	el := n.Children[0]
	var cast *numberCast
	switch {
	case cm.Map != "":
		return nil, fmt.Errorf("map is for maps, not for %v", n)
	case el.Shape == column.Null:
		// Lists that are all empty: any other file's element type holds them.
		cast = &numberCast{elem: vector.Bool, from: vector.Bool}
	case (el.Shape == column.String || el.Shape == column.Bytes) && cm.Hash:
		cast = &numberCast{elem: vector.Int64}
	case el.Shape == column.String || el.Shape == column.Bytes:
		return nil, fmt.Errorf("lists of %v are not stored; {\"kind\": \"sparse\", \"hash\": true} in a mapping file "+
			"makes 63-bit ids of them", el)
	case cm.Hash:
		return nil, fmt.Errorf("hash makes ids of strings, not of %v", n)
	case el.Shape != column.Number:
		return nil, fmt.Errorf("values of type %v %w: lists of numbers and list<struct<id: integer, score: float>> "+
			"have",
			n, errNoPlace)
	default:
		var err error
		if cast, err = castTo(el, cm); err != nil {
			return nil, err
		}
	}
	if err := unexpected(cm, n, vector.Sparse, vector.Embedding); err != nil {
		return nil, err
	}
	if cm.Kind == vector.Embedding || cm.Kind == 0 && (n.Shape == column.FixedList || n.Dim > 0) {
		if cm.DropNulls {
			return nil, errors.New("nulls cannot be left out of an embedding, whose length is fixed: \"kind\": " +
				"\"sparse\" makes a list of it")
		}
		return embeddingConverter(n, cm, cast)
	}
	t := vector.Type{Kind: vector.Sparse, Elem: cast.elem}
	dropNulls := cm.DropNulls
	return &converter{t: t, logical: cast.logical, column: func(a *column.Array, bad func(int, error)) *vector.Column {
		a = column.CompactLists(column.VariableList(a))
		if dropNulls {
			a = column.WithoutNulls(a, a.Children[0])
		}
		child := a.Children[0]
		inner := inList(a, bad)
		reportElements(child, inner)
		c := newColumn(t, a)
		c.Offsets = a.Offsets
		c.Ints, c.Floats, c.Doubles = listValues(child, cast, inner)
		return c
	}}, nil
}

// listValues returns the numbers that the elements of lists become.
func listValues(child *column.Array, cast *numberCast, bad func(int, error)) ([]int64, []float32, []float64) {
	switch child.Type.Shape {
	case column.Null:
		return make([]int64, child.Len), nil, nil
	case column.Number:
		return cast.apply(child, bad)
	}
	return hashes(child), nil, nil
}

// inList makes bad, which speaks of a's entries, speak of the entries of the lists of a.
func inList(a *column.Array, bad func(int, error)) func(int, error) {
	line := &column.Lineage{Offsets: a.Offsets}
	return func(e int, err error) { bad(line.Row(e), err) }
}

// reportElements reports the elements of lists that are null or could not be taken over.
func reportElements(child *column.Array, bad func(int, error)) {
	ReportFaults(child, bad)
	if child.ValidCount() == child.Len {
		return
	}
	for e := range child.Len {
		if child.IsNull(e) {
			bad(e, errNullInList)
		}
	}
}

func embeddingConverter(n *column.Type, cm *Column, cast *numberCast) (*converter, error) {
	dim := int(cm.Dim)
	switch {
	case (n.Shape == column.FixedList || n.Dim > 0) && dim == 0:
		dim = n.Dim
	case (n.Shape == column.FixedList || n.Dim > 0) && dim != n.Dim:
		return nil, fmt.Errorf("the lists have %d values, not %d", n.Dim, dim)
	case dim == 0:
		return nil, fmt.Errorf("an embedding of lists of any length needs its \"dim\" in the mapping file")
	}
	t := vector.Type{Kind: vector.Embedding, Elem: cast.elem, Dim: uint32(dim)}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return &converter{t: t, logical: cast.logical, column: func(a *column.Array, bad func(int, error)) *vector.Column {
		a = column.CompactLists(column.VariableList(a))
		child := a.Children[0]
		inner := inList(a, bad)
		reportElements(child, inner)
		ints, floats, doubles := listValues(child, cast, inner)
		c := newColumn(t, a)
		if child.Len == a.Len*dim && c.Present == nil && equalLengths(a.Offsets, dim) {
			c.Ints, c.Floats, c.Doubles = ints, floats, doubles
			return c
		}
		out := vector.NewColumn(t)
		for i := range a.Len {
			lo, hi := int(a.Offsets[i]), int(a.Offsets[i+1])
			switch {
			case a.IsNull(i):
				out.AppendNulls(1)
				continue
			case hi-lo != dim:
				bad(i, fmt.Errorf("%d values in an embedding of %d", hi-lo, dim))
				out.AppendNulls(1)
				continue
			}
			switch cast.elem.Physical() {
			case vector.Float32Values:
				out.Floats = append(out.Floats, floats[lo:hi]...)
			case vector.Float64Values:
				out.Doubles = append(out.Doubles, doubles[lo:hi]...)
			default:
				out.Ints = append(out.Ints, ints[lo:hi]...)
			}
			out.AddSlot()
		}
		return out
	}}, nil
}

func equalLengths(offsets []int32, dim int) bool {
	for i := 1; i < len(offsets); i++ {
		if int(offsets[i]-offsets[i-1]) != dim {
			return false
		}
	}
	return true
}

// weightedConverter takes lists of structs of an id and a score, and maps from ids to scores.
func weightedConverter(n *column.Type, pair []*column.Type, cm *Column) (*converter, error) {
	if err := unexpected(cm, n, vector.Weighted); err != nil {
		return nil, err
	}
	ok := len(pair) == 2 && pair[1].Shape == column.Number && !pair[1].Elem.IsInteger() && pair[1].Logical == ""
	hash := ok && cm.Hash && (pair[0].Shape == column.String || pair[0].Shape == column.Bytes)
	if !ok || !hash && (pair[0].Shape != column.Number || !pair[0].Elem.IsInteger() || pair[0].Logical != "") {
		return nil, fmt.Errorf("values of type %v %w: a weighted feature has integer ids with float or double scores",
			n, errNoPlace)
	}
	if cm.Hash && !hash {
		return nil, fmt.Errorf("hash makes ids of strings, not of %v", pair[0])
	}
	var cast *numberCast
	if hash {
		cast = &numberCast{elem: vector.Int64}
	} else {
		var err error
		if cast, err = castTo(pair[0], cm); err != nil {
			return nil, err
		}
		if !cast.elem.IsInteger() {
			return nil, fmt.Errorf("ids of a weighted feature are integers, not %v", cast.elem)
		}
	}
	t := vector.Type{Kind: vector.Weighted, Elem: cast.elem, Score: pair[1].Elem}
	isMap := n.Shape == column.Map
	logical := fmt.Sprintf("struct<%s, %s>", logicalName(pair[0].Name), logicalName(pair[1].Name))
	if isMap {
		logical = "map"
	}
	dropNulls := cm.DropNulls
	return &converter{t: t, logical: logical, column: func(a *column.Array, bad func(int, error)) *vector.Column {
		a = column.CompactLists(column.VariableList(a))
		if dropNulls {
			a = column.WithoutNulls(a, a.Children[len(a.Children)-1])
		}
		inner := inList(a, bad)
		ids := a.Children[0]
		var scores *column.Array
		if isMap {
			scores = a.Children[1]
		} else {
			s := a.Children[0]
			reportElements(s, inner)
			ids, scores = s.Children[0].Masked(s.Valid), s.Children[1].Masked(s.Valid)
		}
		for _, p := range []*column.Array{ids, scores} {
			reportElements(p, inner)
		}
		c := newColumn(t, a)
		c.Offsets = a.Offsets
		c.Ints, _, _ = listValues(ids, cast, inner)
		c.ScoreFloats, c.ScoreDoubles = scores.Floats, scores.Doubles
		if isMap {
			reportDuplicates(c, bad)
		}
		return c
	}}, nil
}

// logicalName returns a name as a Logical has it: quoted, as Go does it, where it could be taken for several.
func logicalName(name string) string {
	if name == "" || strings.ContainsAny(name, ",>\"") {
		return strconv.Quote(name)
	}
	return name
}

func reportDuplicates(c *vector.Column, bad func(int, error)) {
	seen := map[int64]bool{}
	for i := range c.Slots {
		lo, hi := c.SlotRange(i)
		clear(seen)
		for _, id := range c.Ints[lo:hi] {
			if seen[id] {
				bad(i, fmt.Errorf("%w: %d", errDuplicateKey, id))
				break
			}
			seen[id] = true
		}
	}
}

// A numberCast changes the element type of numbers as the mapping's elem says.
type numberCast struct {
	elem    vector.Elem
	logical string
	from    vector.Elem
	scale   *column.Rescaling // of timestamps; nil: they stay
}

func castTo(n *column.Type, cm *Column) (*numberCast, error) {
	elem := cm.Elem
	if cm.Timestamp != "" {
		if elem != 0 {
			return nil, errors.New("\"timestamp\" and \"elem\" exclude each other: timestamps are int64")
		}
		scale, err := column.NewRescaling(n.Logical, cm.Timestamp)
		if err != nil {
			return nil, fmt.Errorf("%w, not for %v", err, n)
		}
		return &numberCast{elem: n.Elem, from: n.Elem, logical: cm.Timestamp, scale: scale}, nil
	}
	if elem == 0 || elem == n.Elem {
		logical := n.Logical
		if elem != 0 {
			logical = ""
		}
		return &numberCast{elem: n.Elem, from: n.Elem, logical: logical}, nil
	}
	return &numberCast{elem: elem, from: n.Elem}, nil
}

// apply returns the numbers in the slice that the new element type uses. A number that does not fit is bad: floats
// become integers only when they are whole, integers become floats only when exact; float64 is rounded to float32.
func (k *numberCast) apply(a *column.Array, bad func(int, error)) ([]int64, []float32, []float64) {
	if k.scale != nil {
		return k.scale.Apply(a, bad), nil, nil
	}
	if k.from == k.elem {
		return a.Ints, a.Floats, a.Doubles
	}
	integer := k.from.Physical() == vector.Int64Values
	var ints []int64
	var floats []float32
	var doubles []float64
	switch k.elem.Physical() {
	case vector.Float32Values:
		floats = make([]float32, a.Len)
	case vector.Float64Values:
		doubles = make([]float64, a.Len)
	default:
		ints = make([]int64, a.Len)
	}
	for i := range a.Len {
		if a.IsNull(i) {
			continue
		}
		var err error
		var v float64
		switch {
		case integer && ints != nil:
			ints[i], err = k.integer(a.Ints[i])
		case integer:
			v, err = k.float(a.Ints[i])
		case k.from == vector.Float32:
			v = float64(a.Floats[i])
		default:
			v = a.Doubles[i]
		}
		switch {
		case floats != nil:
			// What is infinite, or no number, stays so.
			if floats[i] = float32(v); math.IsInf(v, 0) != math.IsInf(float64(floats[i]), 0) {
				err = fmt.Errorf("%v does not fit %v", v, k.elem)
			}
		case doubles != nil:
			doubles[i] = v
		case integer:
		case v != math.Trunc(v) || v < -(1<<63) || v >= 1<<63 || !column.ElemHolds(k.elem, int64(v)) ||
			k.elem == vector.Uint64 && v < 0:
			err = fmt.Errorf("%v does not fit %v", v, k.elem)
		default:
			ints[i] = int64(v)
		}
		if err != nil {
			bad(i, err)
		}
	}
	return ints, floats, doubles
}

// integer returns v, an integer, as one of another type.
func (k *numberCast) integer(v int64) (int64, error) {
	if v < 0 && (k.from == vector.Uint64) != (k.elem == vector.Uint64) || !column.ElemHolds(k.elem, v) {
		return v, fmt.Errorf("%s does not fit %v", k.printInt(v), k.elem)
	}
	return v, nil
}

// float returns v, an integer, as a float.
func (k *numberCast) float(v int64) (float64, error) {
	most := int64(1) << 53
	if k.elem == vector.Float32 {
		most = 1 << 24
	}
	if k.from == vector.Uint64 && v < 0 || v > most || v < -most {
		return float64(v), fmt.Errorf("%s is not exact in %v", k.printInt(v), k.elem)
	}
	return float64(v), nil
}

func (k *numberCast) printInt(v int64) string {
	if k.from == vector.Uint64 {
		return fmt.Sprint(uint64(v))
	}
	return fmt.Sprint(v)
}
