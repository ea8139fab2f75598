package workload

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dsistore/dsistore/format/vector"
)

// Columns of the Hive map layout that hold many features each, by Feature.Key.
const (
	DenseColumn    = "dense"    // map<int,float>
	SparseColumn   = "sparse"   // map<int,list<bigint>>
	WeightedColumn = "weighted" // map<int,map<bigint,float>>
)

// Names of the fields of a weighted list's struct in the flat layout.
const (
	idField    = "id"
	scoreField = "score"
)

// MapColumn returns the column of the Hive map layout that holds f under f.Key, or "" where f has a column of its own.
func (f *Feature) MapColumn() string {
	switch f.Family {
	case UserHistory, UserList, ItemList:
		return SparseColumn
	case UserWeighted:
		return WeightedColumn
	case UserDense, ItemDense, ContextDense:
		return DenseColumn
	}
	return ""
}

var arrowElems = map[vector.Elem]arrow.DataType{
	vector.Bool: arrow.FixedWidthTypes.Boolean, vector.Int32: arrow.PrimitiveTypes.Int32,
	vector.Int64:   arrow.PrimitiveTypes.Int64,
	vector.Float32: arrow.PrimitiveTypes.Float32, vector.Float64: arrow.PrimitiveTypes.Float64,
}

// element names a list's elements as Parquet does.
func element(t arrow.DataType) arrow.Field {
	return arrow.Field{Name: "element", Type: t, Nullable: true}
}

func listOf(t arrow.DataType) arrow.DataType { return arrow.ListOfField(element(t)) }

// arrowType returns the Arrow type of a feature that has a column of its own.
func arrowType(t vector.Type) arrow.DataType {
	elem := arrowElems[t.Elem]
	switch t.Kind {
	case vector.Sparse:
		return listOf(elem)
	case vector.Weighted:
		return listOf(arrow.StructOf(
			arrow.Field{Name: idField, Type: elem, Nullable: true},
			arrow.Field{Name: scoreField, Type: arrowElems[t.Score], Nullable: true},
		))
	case vector.Embedding:
		return arrow.FixedSizeListOfField(int32(t.Dim), element(elem))
	}
	return elem
}

// A column is one top-level column of the files and the features in it.
type column struct {
	field    arrow.Field
	features []int
	mapped   bool
}

// columns returns the columns of a layout, in file order.
func columns(fs []Feature, layout Layout) []column {
	var out []column
	at := map[string]int{}
	for i := range fs {
		f := &fs[i]
		name := f.MapColumn()
		if layout == Flat || name == "" {
			out = append(out, column{field: arrow.Field{Name: f.Name, Type: arrowType(f.Type), Nullable: true},
				features: []int{i}})
			continue
		}
		if j, ok := at[name]; ok {
			out[j].features = append(out[j].features, i)
			continue
		}
		value := arrowElems[f.Type.Elem]
		switch f.Type.Kind {
		case vector.Sparse:
			value = listOf(value)
		case vector.Weighted:
			value = arrow.MapOf(value, arrowElems[f.Type.Score])
		}
		at[name] = len(out)
		out = append(out, column{
			field:    arrow.Field{Name: name, Type: arrow.MapOf(arrow.PrimitiveTypes.Int32, value), Nullable: true},
			features: []int{i}, mapped: true,
		})
	}
	return out
}
