package lakehouse

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/files"
)

// Tables of Delta Lake, Iceberg and Hudi, and Hive's transactional ones, keep files that their log has replaced, and
// files that delete rows of others. Taking all of them brings back rows that were deleted or superseded. Such a table
// is refused wherever a path leads into it:
//
//	the path itself, and every directory below it    markers that a listing shows
//	every directory above it                          markers looked up by name
//	a file                                            its name; the names and ids of its columns; its metadata
//
// A Table is where a marker was found.
type Table struct {
	kind   string // one of the constants below
	marker string // the path of the marker
}

const (
	deltaTable   = "a Delta Lake table"
	icebergTable = "an Iceberg table"
	hudiTable    = "a Hudi table"
	hiveACID     = "a transactional (ACID) table of Hive"
)

// exporters says which engines know the log of a kind of table.
var exporters = map[string]string{
	deltaTable:   "Spark, DuckDB's delta_scan or the deltalake package",
	icebergTable: "Spark, Trino, DuckDB's iceberg_scan or the pyiceberg package",
	hudiTable:    "Spark or Trino",
	hiveACID:     "Hive or Spark",
}

// Refusal says that path is in a table, or is one.
func (l *Table) Refusal(path string) error {
	return column.Refuse("", "%s: %s (%s): only its log says which files and rows are current, so the files alone "+
		"would bring back deleted and replaced rows; "+
		"export the table with %s and ingest the export, or pipe it in as an Arrow stream", path, l.kind, l.marker,
		exporters[l.kind])
}

var (
	// Hive writes numbers of transactions with seven digits, and more where they need more, and adds the visibility
	// that compaction has. Impala writes them as they are: names that others give too, so that there the files must be
	// Hive's or Impala's.
	transactional = regexp.MustCompile(`^(base_\d{7}|delta_\d{7}_\d{7}(_\d+)?|(base_\d+|delta_\d+_\d+(_\d+)?)_v\d+` +
		`|delete_delta_\d+_\d+(_\d+)?(_v\d+)?)$`)
	numbered         = regexp.MustCompile(`^(base_\d+|delta_\d+_\d+(_\d+)?)$`)
	transactionFiles = regexp.MustCompile(`^(bucket_\d+|\d{6}_\d+|_orc_acid_version` +
		`|_metadata_acid|[0-9a-f]+-[0-9a-f]+_\d+_data\.\d+\.)`)
	// icebergMetadata: v3.metadata.json, 00003-<uuid>.metadata.json, and both compressed.
	icebergMetadata = regexp.MustCompile(`^v?\d+[^/]*\.metadata\.json(\.gz)?$`)
	// hudiLog: .<file id>_<instant>.log.<version>_<write token>
	hudiLog = regexp.MustCompile(`^\..+_\d{14}(\d{3})?\.log\.\d+(_\d+-\d+-\d+)?(\.cdc)?$`)
	// hudiBase: <file id>_<write token>_<instant>.parquet
	hudiBase = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(-\d+)?` +
		`_\d+-\d+-\d+_\d{14}(\d{3})?\.(parquet|orc)$`)
	deltaVector = regexp.MustCompile(`^deletion_vector_[0-9a-f-]{36}\.bin$`)
)

// hudiPartition begins the name of the file that Hudi puts into each partition.
const hudiPartition = ".hoodie_partition_metadata"

// Marked returns what the listing of a directory shows: nil for plain files.
func Marked(ctx context.Context, in *files.System, dir string, entries []fs.DirEntry) *Table {
	for _, e := range entries {
		name, kind := e.Name(), ""
		switch {
		case e.IsDir() && isTransactional(ctx, in, files.Join(dir, name)):
			kind = hiveACID
		case e.IsDir():
			continue
		case strings.HasPrefix(name, hudiPartition), hudiLog.MatchString(name), hudiBase.MatchString(name):
			kind = hudiTable
		case deltaVector.MatchString(name):
			kind = deltaTable
		default:
			continue
		}
		return &Table{kind: kind, marker: files.Join(dir, name)}
	}
	return markedDirectory(ctx, in, dir)
}

// markedDirectory looks into dir for the markers that a table has at its root or in each partition, by their names: dir
// may hold any number of other entries.
func markedDirectory(ctx context.Context, in *files.System, dir string) *Table {
	for _, name := range in.Has(ctx, dir, "_delta_log/", ".hoodie/", hudiPartition, hudiPartition+".parquet",
		hudiPartition+".orc", "metadata/") {
		path := files.Join(dir, strings.TrimSuffix(name, "/"))
		switch name {
		case "_delta_log/":
			return &Table{kind: deltaTable, marker: path}
		case "metadata/":
		default:
			return &Table{kind: hudiTable, marker: path}
		}
		if len(in.Has(ctx, path, "version-hint.text")) > 0 {
			return &Table{kind: icebergTable, marker: files.Join(path, "version-hint.text")}
		}
		entries, _ := in.ReadDir(ctx, path) // what cannot be listed shows nothing
		if i := slices.IndexFunc(entries,
			func(e fs.DirEntry) bool { return icebergMetadata.MatchString(e.Name()) }); i >= 0 {
			return &Table{kind: icebergTable, marker: files.Join(path, entries[i].Name())}
		}
	}
	return nil
}

// CheckName returns a refusal of path when only files of a table have such a name.
func CheckName(path, name string) error {
	if hudiBase.MatchString(name) {
		return (&Table{kind: hudiTable, marker: name}).Refusal(path)
	}
	return nil
}

// isTransactional reports whether a directory has what transactions of Hive wrote.
func isTransactional(ctx context.Context, in *files.System, dir string) bool {
	switch name := files.Base(dir); {
	case transactional.MatchString(name):
		return true
	case !numbered.MatchString(name):
		return false
	}
	entries, _ := in.ReadDir(ctx, dir) // what cannot be listed shows nothing
	return slices.ContainsFunc(entries,
		func(e fs.DirEntry) bool { return !e.IsDir() && transactionFiles.MatchString(e.Name()) })
}

// An Ancestors looks for markers in the directories above paths. It remembers those that it has seen.
type Ancestors struct {
	In    *files.System
	plain map[string]bool
}

// Check returns a refusal when dir, or a directory above it, is in a table. Both the path as it was given and the one
// that its links lead to count. path is what the refusal speaks of.
func (a *Ancestors) Check(ctx context.Context, path, dir string) error {
	if files.IsURI(dir) {
		if found := a.climb(ctx, dir); found != nil {
			return found.Refusal(path)
		}
		return nil
	}
	given, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	paths := []string{given}
	if real, err := filepath.EvalSymlinks(given); err == nil && real != given {
		paths = append(paths, real)
	}
	for _, from := range paths {
		if found := a.climb(ctx, from); found != nil {
			return found.Refusal(path)
		}
	}
	return nil
}

// climb returns the first table at or above dir. The root of the file system, a bucket's, the home directory, the one
// for temporary files and what is above them belong to no table: a marker left there by accident does not stand for
// everything below.
func (a *Ancestors) climb(ctx context.Context, dir string) *Table {
	var seen []string
	for ; !a.plain[dir] && !isBoundary(dir); dir = files.Dir(dir) {
		if isTransactional(ctx, a.In, dir) {
			return &Table{kind: hiveACID, marker: dir}
		}
		if found := markedDirectory(ctx, a.In, dir); found != nil {
			return found
		}
		seen = append(seen, dir)
	}
	if a.plain == nil {
		a.plain = map[string]bool{}
	}
	for _, s := range seen {
		a.plain[s] = true
	}
	return nil
}

func isBoundary(dir string) bool {
	home, err := os.UserHomeDir()
	return dir == files.Dir(dir) || err == nil && dir == filepath.Clean(home) || dir == filepath.Clean(os.TempDir())
}

// FileMeta are what the footer of a file says of the table that it belongs to.
type FileMeta struct {
	Columns []string
	IDs     map[string]int32  // Iceberg's ids of the columns, where there are some
	Meta    map[string]string // the writer's key-value metadata
}

// A FileMetaReader is a column.Reader of a format whose files tables of Delta Lake, Iceberg and Hudi consist of.
type FileMetaReader interface{ FileMeta() FileMeta }

// The ids that Iceberg reserves for the columns of files of position deletes.
const (
	icebergDeletePath = 2147483546
	icebergDeletePos  = 2147483545
)

var (
	hudiColumns = []string{"_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key",
		"_hoodie_partition_path", "_hoodie_file_name"}
	acidColumns = []string{"operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"}
	// hudiMeta are keys that only Hudi's own writers put into a footer.
	hudiMeta = []string{"org.apache.hudi.bloomfilter", "hoodie_bloom_filter_type_code", "hoodie_min_record_key",
		"hoodie_max_record_key"}
)

// Check returns a refusal when a file is part of a table whatever directory it lies in: its rows are no rows of the
// table, or may be replaced ones. dropped reports whether the mapping file drops a column.
func (s FileMeta) Check(dropped func(column string) bool) error {
	kind := s.Meta["delete-type"]
	if s.IDs["file_path"] == icebergDeletePath && s.IDs["pos"] == icebergDeletePos {
		kind = "position"
	}
	if kind == "position" || kind == "equality" {
		return column.Refuse("", "Iceberg's %s deletes: each row says which row of another file is deleted, and is "+
			"none of the table; export the table with %s and ingest the export", kind, exporters[icebergTable])
	}
	if slices.Equal(s.Columns, acidColumns) {
		return column.Refuse("", "a file of %s: its rows are events that insert, update and delete; export the table "+
			"with %s and ingest the export",
			hiveACID, exporters[hiveACID])
	}
	for _, key := range hudiMeta {
		if _, ok := s.Meta[key]; ok {
			return column.Refuse("", "a file of %s (its footer has %s): another file may hold newer versions of its "+
				"rows; export the table with %s and ingest the export",
				hudiTable, key, exporters[hudiTable])
		}
	}
	gone := 0
	for _, c := range hudiColumns {
		if !slices.Contains(s.Columns, c) {
			return nil
		}
		if dropped(c) {
			gone++
		}
	}
	if gone == len(hudiColumns) {
		return nil
	}
	quoted := make([]string, len(hudiColumns))
	for i, c := range hudiColumns {
		quoted[i] = fmt.Sprintf(`%q: {"drop": true}`, c)
	}
	return column.Refuse("", "it has the meta columns of %s (%s, ...), so that another file may hold newer versions "+
		"of its rows; export the table with %s and ingest the export, "+
		"with a mapping file that says that this is one by dropping the meta columns: {\"columns\": {%s}}",
		hudiTable, hudiColumns[0], exporters[hudiTable], strings.Join(quoted, ", "))
}
