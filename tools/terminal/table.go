package terminal

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
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
		header[i] = OneLine(name)
	}
	w.AppendHeader(header)
	var configs []table.ColumnConfig
	for _, name := range right {
		configs = append(configs, table.ColumnConfig{Name: OneLine(name), Align: text.AlignRight,
			AlignHeader: text.AlignRight})
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

// Width returns how many columns out has, 0 where it is no terminal.
func Width(out io.Writer) int {
	if f, ok := out.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}

// leastText is how much a last column of words is shortened to at most.
const leastText = 24

// FittingTable is Table without the columns at the right for which a terminal of a width has no room, and returns how
// many that are. A last column of words is shortened first. A width of 0 has room for all.
func FittingTable(out io.Writer, width int, names []string, rows [][]string, right ...string) (left int) {
	widths := make([]int, len(names))
	for i, name := range names {
		widths[i] = text.StringWidth(OneLine(name))
		for _, row := range rows {
			widths[i] = max(widths[i], text.StringWidth(OneLine(row[i])))
		}
	}
	all, n := 0, 0 // columns that fit, and what they take
	for ; n < len(names); n++ {
		if width > 0 && n > 0 && all+widths[n]+2*n > width {
			break
		}
		all += widths[n]
	}
	if n == len(names) {
		Table(out, names, rows, right...)
		return 0
	}
	room := width - all - 2*n
	shorten := n == len(names)-1 && room >= leastText && !slices.Contains(right, names[n])
	if shorten {
		n++
	}
	cut := make([][]string, len(rows))
	for i, row := range rows {
		cut[i] = slices.Clone(row[:n])
		if shorten {
			cut[i][n-1] = Shorten(OneLine(row[n-1]), room)
		}
	}
	Table(out, names[:n], cut, slices.DeleteFunc(slices.Clone(right),
		func(name string) bool { return !slices.Contains(names[:n], name) })...)
	return len(names) - n
}

// Shorten returns s, or so much of it and an ellipsis as a width has room for.
func Shorten(s string, width int) string {
	if text.StringWidth(s) <= width {
		return s
	}
	return text.Trim(s, width-1) + "…"
}

// Wrap prints a text on lines of a terminal's width, those after the first indented. A width of 0 has room for it on
// one.
func Wrap(out io.Writer, width, indent int, s string) {
	line, used := "", 0
	for _, word := range strings.Fields(OneLine(s)) {
		w := text.StringWidth(word)
		switch {
		case used == 0:
			line, used = word, w
		case width > 0 && used+1+w > width:
			fmt.Fprintln(out, line)
			line, used = strings.Repeat(" ", indent)+word, indent+w
		default:
			line, used = line+" "+word, used+1+w
		}
	}
	fmt.Fprintln(out, line)
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
