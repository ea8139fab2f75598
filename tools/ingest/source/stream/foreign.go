package stream

import (
	"bytes"
	"path/filepath"
	"strings"
)

const unpack = ", which is not supported: decompress it, or use gzip, zstd or bzip2"

// foreignMagic says how files begin that are no text and of no format that is read here, what they are and what to do.
var foreignMagic = []struct{ magic, what string }{
	{"\xfd7zXZ\x00", "compressed with xz" + unpack},
	{"\x04\x22\x4d\x18", "compressed with lz4" + unpack},
	{"\xff\x06\x00\x00sNaPpY", "compressed with snappy" + unpack},
	{"\x89LZO\x00\r\n", "compressed with lzo" + unpack},
	{"PK\x03\x04", "a zip archive" + unpack},
	{"7z\xbc\xaf", "a 7z archive" + unpack},
	{"Obj\x01", "an Avro file, which is not supported: pipe it in as an Arrow stream"},
	{"PFA1", "a Puffin file, statistics or deletes of an Iceberg table: export the table with Spark, Trino, DuckDB's " +
		"iceberg_scan or the pyiceberg package"},
	{"SEQ\x06", "a Hadoop SequenceFile, which is not supported: write the table as text or Parquet"},
	{"RCF\x01", "an RCFile, which is not supported: write the table as text or Parquet"},
}

const tarArchive = "a tar archive, which is not supported: unpack it, and ingest the files in it"

// TarHead is how many first bytes of a file tell whether it is a tar archive.
const TarHead = 262

// Tar says of a tar archive, by its name or its first TarHead bytes, compressed or not, that it is one. Empty: it is
// none.
func Tar(path string, head []byte) string {
	name := strings.ToLower(path)
	switch ext := filepath.Ext(name); ext {
	case ".tar", ".tgz", ".tbz2", ".txz":
		return tarArchive
	case ".gz", ".bz2", ".zst", ".xz":
		if strings.HasSuffix(strings.TrimSuffix(name, ext), ".tar") {
			return tarArchive
		}
	}
	if len(head) >= TarHead && string(head[TarHead-5:TarHead]) == "ustar" {
		return tarArchive
	}
	return ""
}

// Foreign says what the file is, and what to do, when it is known to be nothing that is read here.
func Foreign(path string, head []byte) string {
	if what := Tar(path, head); what != "" {
		return what
	}
	// What Hadoop writes with these begins with a length, so that only the name tells.
	switch ext := filepath.Ext(path); ext {
	case ".snappy", ".lz4", ".lzo", ".lzo_deflate":
		return "compressed with " + ext[1:] + unpack
	case ".xlsx", ".xls", ".ods":
		return "a spreadsheet, which is not supported: save it as CSV"
	}
	for _, m := range foreignMagic {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.what
		}
	}
	return ""
}
