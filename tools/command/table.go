package command

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// plainStyle is columns apart by two spaces, a header and no frame, so that output goes through grep, sort and awk.
var plainStyle = table.Style{
	Name:   "plain",
	Box:    table.BoxStyle{PaddingRight: "  ", PageSeparator: "\n"},
	Format: table.FormatOptions{Header: text.FormatDefault},
	Options: table.Options{
		DoNotColorBordersAndSeparators: true,
	},
}

// Table prints rows under the names. Columns named in right are set against the right edge, as numbers are.
func Table(out io.Writer, names []string, rows [][]string, right ...string) {
	w := table.NewWriter()
	w.SetStyle(plainStyle)
	header := make(table.Row, len(names))
	for i, name := range names {
		header[i] = name
	}
	w.AppendHeader(header)
	var configs []table.ColumnConfig
	for _, name := range right {
		configs = append(configs, table.ColumnConfig{Name: name, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	w.SetColumnConfigs(configs)
	for _, row := range rows {
		cells := make(table.Row, len(row))
		for i, c := range row {
			cells[i] = OneLine(c)
		}
		w.AppendRow(cells)
	}
	for line := range strings.Lines(w.Render()) {
		fmt.Fprintf(out, "%s\n", strings.TrimRight(line, " \n"))
	}
}

// Facts prints name and value, a line each, values aligned.
func Facts(out io.Writer, facts [][2]string) {
	width := 0
	for _, f := range facts {
		width = max(width, len(f[0]))
	}
	for _, f := range facts {
		fmt.Fprintf(out, "%-*s  %s\n", width, f[0], OneLine(f[1]))
	}
}

// JSON prints v as one object.
func JSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// CSV prints rows under the names, unless these are nil, as RFC 4180 has it, with "\n" at the end of lines.
func CSV(out io.Writer, names []string, rows [][]string) error {
	w := csv.NewWriter(out)
	if names != nil {
		if err := w.Write(names); err != nil {
			return err
		}
	}
	return w.WriteAll(rows)
}
