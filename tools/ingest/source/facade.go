package source

import (
	"cmp"
	"errors"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source/arrow"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/files"
	"github.com/dsistore/dsistore/tools/ingest/source/hive"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
)

// A Field is a feature that a source offers; see mapping.Field.
type Field = mapping.Field

// Records are Arrow records in memory; see arrow.Records.
type Records = arrow.Records

// An Inferred says what types columns have that nothing but their values gives; see input.Inferred.
type Inferred = input.Inferred

// An InferredColumn is a column of an Inferred; see input.InferredColumn.
type InferredColumn = input.InferredColumn

// A RecordReader is where Records come from; see arrow.RecordReader.
type RecordReader = arrow.RecordReader

// NewRecords takes r over; see arrow.NewRecords.
func NewRecords(r RecordReader, resident bool) *Records { return arrow.NewRecords(r, resident) }

// ErrUnread is matched when an object is not what was listed, or its service does not give it; see files.ErrUnread.
var ErrUnread = files.ErrUnread

// IsApart reports whether an error is of a file that does not go with the others; see column.RefusedError.
func IsApart(err error) bool {
	refused := (*column.RefusedError)(nil)
	return errors.As(err, &refused) && refused.Apart
}

// IsURI reports whether a path is in an object store; see files.IsURI.
func IsURI(path string) bool { return files.IsURI(path) }

// SameFile reports whether two files are one, by the same or by another name.
func SameFile(a, b File) bool { return files.SameFile(a.Path, b.Path) }

// TypeName prints a type with its logical type, for messages.
func TypeName(t vector.Type, logical string) string {
	if logical == "" {
		return t.String()
	}
	return t.String() + " (" + logical + ")"
}

// IsTypeName reports whether a mapping file can say a type by its name, or by that of its logical type.
func IsTypeName(t vector.Type, logical string) bool {
	_, err := hive.ParseType(cmp.Or(logical, t.String()), maxNested)
	return err == nil
}

// maxNested is deeper than the type of any feature.
const maxNested = 8

// OrderPartition returns p with its keys in the order of keys, where these are the same: p itself where they are not.
func OrderPartition(p catalog.Partition, keys []string) catalog.Partition {
	return hive.OrderPartition(p, keys)
}
