package page

import "github.com/apache/arrow-go/v18/parquet/metadata"

// Quirks are what some writers did that Parquet's specification does not say.
type Quirks struct {
	// ShortChunks: the length of a column chunk leaves out the header of its dictionary page (PARQUET-816).
	ShortChunks bool
	// alwaysCompressed: data pages of version 2 are compressed although their header says that they are not
	// (ARROW-17100).
	alwaysCompressed bool
	// lowLevels: levels in the BIT_PACKED encoding begin with the lowest bit, not the highest (IMPALA-3006).
	lowLevels bool
}

// QuirksOf returns the quirks of the version of a program that a file's footer says has written it.
func QuirksOf(createdBy string) Quirks {
	writer := metadata.NewAppVersion(createdBy)
	return Quirks{
		ShortChunks:      writer.LessThan(metadata.Parquet816FixedVersion),
		alwaysCompressed: writer.App == "parquet-cpp" && writer.Version.Major < 2,
		lowLevels:        writer.App == "impala",
	}
}
