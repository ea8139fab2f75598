package orc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
)

// rename gives the columns of a file of old Hive, which are called _col0, _col1 and so on, the names that the DDL has
// in their places, as Hive does. Other files keep their own names. It returns the names in the file.
func (t *Tail) rename(d *input.Set) (inFile []string, err error) {
	root := &t.Types[0]
	inFile = root.Names
	if d.Ddl == nil || root.Kind != kindStruct || len(inFile) == 0 {
		return inFile, nil
	}
	var want []string
	for _, n := range d.Ddl.Columns {
		want = append(want, n.Name)
	}
	for i, name := range inFile {
		if name != fmt.Sprint("_col", i) {
			return inFile, checkNames(inFile, want)
		}
	}
	if len(want) < len(inFile) {
		return nil, column.Refuse("", "the file has %d columns, _col0 to _col%d, to which the DDL gives names by "+
			"their places, and the DDL has %d (%s): give the DDL of this table, with all its columns", len(inFile),
			len(inFile)-1, len(want), strings.Join(want, ", "))
	}
	root.Names = want[:len(inFile)]
	return inFile, nil
}

// checkNames refuses a DDL that is that of another table: it has none of the columns.
func checkNames(inFile, want []string) error {
	for _, name := range inFile {
		// Files of transactional tables are refused for what they are.
		if name == "originalTransaction" || slices.ContainsFunc(want, func(w string) bool {
			return strings.EqualFold(w, name)
		}) {
			return nil
		}
	}
	return column.Refuse("", "the DDL has none of the file's columns (%s), which have names of their own: leave out "+
		"--ddl, or give that of this table", strings.Join(inFile[:min(len(inFile), 12)], ", "))
}
