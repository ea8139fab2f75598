package source

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
)

// TestMappingGuide parses every mapping file that docs/reference/types.md shows, and runs its worked example.
func TestMappingGuide(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/types.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1)
	for _, b := range blocks {
		if _, err := mapping.Parse(b[1]); err != nil {
			t.Errorf("%v in\n%s", err, b[1])
		}
	}
	ddl := regexp.MustCompile("(?s)```\n(CREATE TABLE.*?)```").FindSubmatch(text)
	data := regexp.MustCompile("(?s)```\ndump/ds=2026-11-01/000000_0:\n(.*?)```").FindSubmatch(text)
	if ddl == nil || data == nil || len(blocks) < 3 {
		t.Fatal("the worked example is not where this test looks for it")
	}
	dir := writeFiles(t, map[string]string{
		"ads.sql": string(ddl[1]), "ads.json": string(blocks[len(blocks)-1][1]),
		"dump/ds=2026-11-01/000000_0": string(data[1]),
	})
	chunks, err := readPath(t, filepath.Join(dir, "dump"), Options{
		Format: "text", DDLFile: filepath.Join(dir, "ads.sql"), MappingFile: filepath.Join(dir, "ads.json"),
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `ds=2026-11-01: user_id=7 click=1 price=1250 items=[31,44] scores=[5:0.5,9:0.25]
ds=2026-11-01: user_id=7 click=0 price=null items=[] scores=null
`
	if got := dump(chunks); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestLogsGuide reads lines of the logs that docs/reference/types.md speaks of with the mapping files that it gives for
// them.
func TestLogsGuide(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/types.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1)
	for i, log := range []struct{ text, want string }{
		{"InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n536365,71053,\"FRAME " +
			"7\"\", WHITE\",6,2010-12-01 08:26:00,2.55,17850.0,United Kingdom\nC1,85123A,,-1,1970-01-01 00:00:00,3,,\n",
			`InvoiceNo="536365" StockCode="71053" Description="FRAME 7\", WHITE" Quantity=6 ` +
				`InvoiceDate=1291191960000000000 UnitPrice=2.55 CustomerID=17850 Country="United Kingdom"` + "\n" +
				`InvoiceNo="C1" StockCode="85123A" Description=null Quantity=-1 InvoiceDate=0 UnitPrice=3 ` +
				`CustomerID=null Country=null` + "\n"},
		{"1::1193::5::978300760\n", "user=1 movie=1193 rating=5 time=978300760\n"},
		{"label\tI1\tC1\tgenres\n0\t\t68fd1e64\ta|b\n1\t-2\t\t\n",
			"label=0 I1=null C1=3359235359314614258 genres=[7577133169179506477,4333189964687331277]\nlabel=1 " +
				"I1=-2 C1=null genres=null\n"},
	} {
		dir := writeFiles(t, map[string]string{"m.json": string(blocks[2+i][1]), "log": log.text})
		chunks, err := readPath(t, filepath.Join(dir, "log"), Options{Format: "text",
			MappingFile: filepath.Join(dir, "m.json")})
		if got := dump(chunks); err != nil || got != log.want {
			t.Errorf("%s\ngot %v\n%swant\n%s", blocks[2+i][1], err, got, log.want)
		}
	}
}
