// Package retail derives a training table from the Online Retail log (UCI; one CSV file a day, one row an invoice
// line): one sample for each line, with what was known of the customer before the invoice and of the basket before the
// line.
//
//	session  invoice                    item features       constant for a stock code
//	user     customer (null: guest)     history features    constant within an invoice, shift between invoices
//	label    line was a return          basket              grows by one id a line
//
// The table is written in Hive layout, ds=DAY/part-0.parquet, so that it also exercises partitions, and guests give
// null lists beside the empty lists of first-time customers.
package retail

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/cespare/xxhash/v2"
)

// HistoryLength bounds a customer's history, newest first.
const HistoryLength = 50

// Schema of the derived table; ds is in the directory names.
var Schema = arrow.NewSchema([]arrow.Field{
	{Name: "invoice", Type: arrow.BinaryTypes.String},
	{Name: "time", Type: &arrow.TimestampType{Unit: arrow.Second}},
	{Name: "customer", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "label_return", Type: arrow.PrimitiveTypes.Int8},
	{Name: "quantity", Type: arrow.PrimitiveTypes.Int32},
	{Name: "unit_price", Type: arrow.PrimitiveTypes.Float64},
	{Name: "country", Type: arrow.BinaryTypes.String},
	{Name: "item", Type: arrow.PrimitiveTypes.Int64},
	{Name: "item_words", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	{Name: "basket", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64)},
	{Name: "hist_items", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	{Name: "hist_quantity", Type: arrow.ListOf(arrow.StructOf(
		arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		arrow.Field{Name: "score", Type: arrow.PrimitiveTypes.Float32},
	)), Nullable: true},
	{Name: "hist_invoices", Type: arrow.PrimitiveTypes.Int16, Nullable: true},
}, nil)

type purchase struct {
	item     int64
	quantity float32
}

type customer struct {
	history  []purchase // newest first
	invoices int16
}

type line struct {
	invoice, country, words string
	time                    time.Time
	customer                int64
	guest                   bool
	item                    int64
	quantity                int32
	price                   float64
}

// Derive reads the by-day CSV files of dir in date order and writes the table below out. It returns the rows written.
func Derive(dir, out string) (rows int, err error) {
	days, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	if err != nil {
		return 0, err
	}
	if len(days) == 0 {
		return 0, fmt.Errorf("no *.csv files in %s", dir)
	}
	slices.Sort(days)
	customers := map[int64]*customer{}
	for _, path := range days {
		lines, err := readDay(path)
		if err != nil {
			return rows, err
		}
		day := strings.TrimSuffix(filepath.Base(path), ".csv")
		if err := writeDay(filepath.Join(out, "ds="+day), lines, customers); err != nil {
			return rows, err
		}
		rows += len(lines)
	}
	return rows, nil
}

func readDay(path string) ([]line, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	if _, err := r.Read(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var lines []line
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		l, err := parseLine(rec)
		if err != nil {
			n, _ := r.FieldPos(0)
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		lines = append(lines, l)
	}
}

func parseLine(rec []string) (line, error) {
	if len(rec) != 8 {
		return line{}, fmt.Errorf("%d fields, want 8", len(rec))
	}
	quantity, err := strconv.ParseInt(rec[3], 10, 32)
	if err != nil {
		return line{}, err
	}
	at, err := time.Parse(time.DateTime, rec[4])
	if err != nil {
		return line{}, err
	}
	price, err := strconv.ParseFloat(rec[5], 64)
	if err != nil {
		return line{}, err
	}
	l := line{invoice: rec[0], item: hash(rec[1]), words: rec[2], quantity: int32(quantity), time: at, price: price,
		country: rec[7]}
	if rec[6] == "" {
		l.guest = true
		return l, nil
	}
	id, err := strconv.ParseFloat(rec[6], 64)
	l.customer = int64(id)
	return l, err
}

// hash gives a 63-bit id.
func hash(s string) int64 { return int64(xxhash.Sum64String(s) >> 1) }

func writeDay(dir string, lines []line, customers map[int64]*customer) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "part-0.parquet"))
	if err != nil {
		return err
	}
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd))
	w, err := pqarrow.NewFileWriter(Schema, f, props, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return errors.Join(err, f.Close())
	}
	rec := buildDay(lines, customers)
	defer rec.Release()
	return errors.Join(w.Write(rec), w.Close())
}

// buildDay makes the day's samples. A customer's history takes in an invoice only when its last line is past, so that
// it is constant within an invoice.
func buildDay(lines []line, customers map[int64]*customer) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, Schema)
	defer b.Release()
	for start := 0; start < len(lines); {
		end := start
		for end < len(lines) && lines[end].invoice == lines[start].invoice {
			end++
		}
		var basket []int64
		c := customers[lines[start].customer]
		if c == nil && !lines[start].guest {
			c = &customer{}
			customers[lines[start].customer] = c
		}
		for _, l := range lines[start:end] {
			appendSample(b, l, c, basket)
			basket = append(basket, l.item)
		}
		if c != nil {
			c.invoices++
			for _, l := range lines[start:end] {
				c.history = slices.Insert(c.history, 0, purchase{l.item, float32(l.quantity)})
			}
			c.history = c.history[:min(len(c.history), HistoryLength)]
		}
		start = end
	}
	return b.NewRecordBatch()
}

func appendSample(b *array.RecordBuilder, l line, c *customer, basket []int64) {
	b.Field(0).(*array.StringBuilder).Append(l.invoice)
	b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(l.time.Unix()))
	if l.guest {
		b.Field(2).AppendNull()
	} else {
		b.Field(2).(*array.Int64Builder).Append(l.customer)
	}
	returned := int8(0)
	if l.quantity < 0 {
		returned = 1
	}
	b.Field(3).(*array.Int8Builder).Append(returned)
	b.Field(4).(*array.Int32Builder).Append(l.quantity)
	b.Field(5).(*array.Float64Builder).Append(l.price)
	b.Field(6).(*array.StringBuilder).Append(l.country)
	b.Field(7).(*array.Int64Builder).Append(l.item)
	words := b.Field(8).(*array.ListBuilder)
	if l.words == "" {
		words.AppendNull()
	} else {
		words.Append(true)
		for _, w := range strings.Fields(l.words) {
			words.ValueBuilder().(*array.Int64Builder).Append(hash(w))
		}
	}
	list := b.Field(9).(*array.ListBuilder)
	list.Append(true)
	list.ValueBuilder().(*array.Int64Builder).AppendValues(basket, nil)
	appendHistory(b, c)
}

func appendHistory(b *array.RecordBuilder, c *customer) {
	if c == nil {
		for i := 10; i <= 12; i++ {
			b.Field(i).AppendNull()
		}
		return
	}
	items, pairs := b.Field(10).(*array.ListBuilder), b.Field(11).(*array.ListBuilder)
	items.Append(true)
	pairs.Append(true)
	pair := pairs.ValueBuilder().(*array.StructBuilder)
	for _, p := range c.history {
		items.ValueBuilder().(*array.Int64Builder).Append(p.item)
		pair.Append(true)
		pair.FieldBuilder(0).(*array.Int64Builder).Append(p.item)
		pair.FieldBuilder(1).(*array.Float32Builder).Append(p.quantity)
	}
	b.Field(12).(*array.Int16Builder).Append(c.invoices)
}
