package retail

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

const day1 = `InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country
536365,85123A,WHITE HANGING HEART,6,2010-12-01 08:26:00,2.55,17850.0,United Kingdom
536365,71053,WHITE METAL LANTERN,6,2010-12-01 08:26:00,3.39,17850.0,United Kingdom
C536379,D,,-1,2010-12-01 09:41:00,27.5,,United Kingdom
`

const day2 = `InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country
536999,71053,"LANTERN, METAL",2,2010-12-02 08:26:00,3.39,17850.0,United Kingdom
`

func TestDerive(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"2010-12-01.csv": day1, "2010-12-02.csv": day2} {
		if err := os.WriteFile(filepath.Join(in, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := Derive(in, out)
	if err != nil || rows != 4 {
		t.Fatalf("%d rows, %v", rows, err)
	}
	want := map[string]string{
		"2010-12-01 basket":        "[[] [" + itoa(hash("85123A")) + "] []]",
		"2010-12-01 customer":      "[17850 17850 (null)]",
		"2010-12-01 label_return":  "[0 0 1]",
		"2010-12-01 hist_items":    "[[] [] (null)]",
		"2010-12-02 hist_invoices": "[1]",
	}
	for key, text := range want {
		day, column := key[:10], key[11:]
		got := columnText(t, filepath.Join(out, "ds="+day, "part-0.parquet"), column)
		if got != text {
			t.Errorf("%s: got %s, want %s", key, got, text)
		}
	}
	history := columnText(t, filepath.Join(out, "ds=2010-12-02", "part-0.parquet"), "hist_items")
	if want := "[[" + itoa(hash("71053")) + " " + itoa(hash("85123A")) + "]]"; history != want {
		t.Errorf("history %s, want newest first %s", history, want)
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func columnText(t *testing.T, path, column string) string {
	t.Helper()
	r, err := file.OpenParquetFile(path, false,
		file.WithReadProps(parquet.NewReaderProperties(memory.DefaultAllocator)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	table, err := fr.ReadTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	return table.Column(table.Schema().FieldIndices(column)[0]).Data().Chunk(0).String()
}
