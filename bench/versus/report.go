package versus

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A Size is what a form of the table takes on disk.
type Size struct {
	Form        string
	Bytes       int64
	BytesPerRow float64
}

// SizeOf returns the Size of bytes that hold rows.
func SizeOf(form string, bytes, rows int64) Size {
	return Size{Form: form, Bytes: bytes, BytesPerRow: float64(bytes) / float64(rows)}
}

// PrintSizes prints a line a size, and how many times the first one holds it.
func PrintSizes(w io.Writer, sizes []Size) {
	t := NewTable(w, "on disk", "MB", "bytes/row", "against "+sizes[0].Form)
	for _, s := range sizes {
		t.AppendRow(table.Row{s.Form, fmt.Sprintf("%.1f", float64(s.Bytes)/1e6), fmt.Sprintf("%.0f", s.BytesPerRow),
			fmt.Sprintf("%.2fx", float64(s.Bytes)/float64(sizes[0].Bytes))})
	}
	t.Render()
}

// PrintScans prints a line for each engine's scans of as many features, and its speed against the second's.
func PrintScans(w io.Writer, features int, measures []Measure) {
	noun := "threads"
	if measures[0].Threads == 1 {
		noun = "thread"
	}
	t := NewTable(w, fmt.Sprintf("%d features, %d %s", features, measures[0].Threads, noun),
		"samples/s", "MB/s of tensors", "MB from disk", "MB allocated", "against "+measures[1].Engine)
	for _, m := range measures {
		t.AppendRow(table.Row{m.Engine, count(m.SamplesPerSec), fmt.Sprintf("%.0f", m.TensorMBPerS),
			fmt.Sprintf("%.2f", float64(m.StoredBytes)/1e6), fmt.Sprintf("%.1f", float64(m.AllocBytes)/1e6),
			fmt.Sprintf("%.2fx", m.SamplesPerSec/measures[1].SamplesPerSec)})
	}
	t.Render()
}

// NewTable returns a table of w whose first column is text and whose others are numbers.
func NewTable(w io.Writer, header ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(header)
	var right []table.ColumnConfig
	for i := 2; i <= len(header); i++ {
		right = append(right, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	return t
}

// count prints a number of thousands or more in three digits.
func count(v float64) string {
	switch {
	case v >= 1e7:
		return fmt.Sprintf("%.1f M", v/1e6)
	case v >= 1e6:
		return fmt.Sprintf("%.2f M", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.0f k", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}
