package main

import (
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

// printTable prints rows under the names. Columns named in right are set against the right edge, as numbers are.
func (a *app) printTable(names []string, rows [][]string, right ...string) {
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
			cells[i] = oneLine(c)
		}
		w.AppendRow(cells)
	}
	for line := range strings.Lines(w.Render()) {
		a.printf("%s\n", strings.TrimRight(line, " \n"))
	}
}

// printFacts prints name and value, a line each, values aligned.
func (a *app) printFacts(facts [][2]string) {
	width := 0
	for _, f := range facts {
		width = max(width, len(f[0]))
	}
	for _, f := range facts {
		a.printf("%-*s  %s\n", width, f[0], oneLine(f[1]))
	}
}
