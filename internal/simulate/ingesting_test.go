package simulate

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest"
)

// This file has ingests of files by the real code of package ingest. The files are in the working directory of the
// process, and are written anew by each ingest: what a file holds follows from its name and the run.

// An ingestion says what is ingested.
type ingestion struct {
	table, part string
	overwrite   bool
	// shared: the file is the same for all machines, so that the table takes it once. Else its rows are new.
	shared bool
}

// sharedRows are the rows of the file that all machines have.
var sharedRows = []int64{901, 902}

// mappingFile says what the columns of the files are.
const mappingFile = "mapping.json"

// ingestFile ingests a small file. Where the store answers with an error it is not known whether that was done, and the
// file is ingested once more, as people do: its rows must not be there twice.
func ingestFile(o ingestion) func(m *machine) {
	what := "ingest"
	if o.overwrite {
		what = "overwrite"
	}
	return func(m *machine) {
		m.do(what+" by ingest of "+o.table, func(ctx context.Context) error {
			m.commits++
			name, rows := fmt.Sprintf("%s%d.jsonl", m.name(), m.commits), sharedRows
			if o.shared {
				name = "shared.jsonl"
			} else {
				rows = m.newRows(2)
			}
			opts := ingest.Options{MappingFile: mappingFile, Overwrite: o.overwrite, Options: quickly}
			if o.part != "" {
				opts.PartitionBy = "p"
			}
			if err := writeFiles(name, o.part, rows); err != nil {
				m.r.fail(err)
				return err
			}
			for again := false; ; again = true {
				i := &intent{operation: what, table: o.table, removals: -1, apply: o.apply(rows),
					partitions: noPartition}
				end := m.at(i)
				report, err := ingest.Run(ctx, m.store, o.table, []string{name}, opts)
				end()
				m.r.model.committed(i, report.Snapshot, err, excused(err))
				if err == nil || again || !excused(err) || ctx.Err() != nil {
					return err
				}
			}
		})
	}
}

// noPartition are the partitions that rows without one are put into: the other where the table has partitions.
var noPartition = []string{"", "p=__HIVE_DEFAULT_PARTITION__"}

// apply is what an ingest does to the rows.
func (o ingestion) apply(rows []int64) func(*state, uint64) {
	p := partition(o.part)
	add := addRows(p, rows)
	return func(s *state, number uint64) {
		if o.part == "" && !o.overwrite {
			for _, row := range rows {
				s.rows[row] = rowModel{partition: unsettled}
			}
			return
		}
		if o.overwrite {
			s.emptyPartition(p)
		}
		add(s, number)
	}
}

func (s *state) emptyPartition(p catalog.Partition) {
	for row, r := range s.rows {
		if r.partition == p.String() {
			delete(s.rows, row)
		}
	}
}

// writeFiles writes a file of rows, and what says what its columns are.
func writeFiles(name, part string, rows []int64) error {
	var b strings.Builder
	for _, row := range rows {
		if part == "" {
			fmt.Fprintf(&b, "{\"row\": %d}\n", row)
		} else {
			fmt.Fprintf(&b, "{\"row\": %d, \"p\": %q}\n", row, part)
		}
	}
	if err := os.WriteFile(name, []byte(b.String()), 0o666); err != nil {
		return err
	}
	return os.WriteFile(mappingFile, []byte(`{"columns": {"row": {"type": "bigint"}, "p": {"type": "string"}}}`), 0o666)
}
