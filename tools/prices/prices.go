// Package prices says what requests and bytes of a store cost.
//
//	object.Traffic ─┐
//	                ├─ Table.Cost ─> Cost        a Table: a file, DSISTORE_PRICES, or the list prices of a service
//	stored bytes ───┘
package prices

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage/object"
)

// Variable is the environment variable that names a file of prices.
const Variable = "DSISTORE_PRICES"

// gb is the bytes of a GB on the services' bills.
const gb = 1 << 30

// A Table is what a service takes.
type Table struct {
	Name     string // of what service, class and region, and as of when
	Currency string

	Reads, Lists, Writes, Deletes float64 // of 1,000 requests
	Down                          float64 // of a GB that is transferred out
	Stored                        float64 // of a GB that is stored for a month
}

// lists are what services said, by the scheme of their stores. Azure is not among them: no list of it was at hand.
var lists = map[string]Table{
	"s3": {
		Name: "Amazon S3 Standard, us-east-1, within the region, price list of 2026-07-01", Currency: "USD",
		Reads: 0.0004, Lists: 0.005, Writes: 0.005, Stored: 0.023,
	},
	"gs": {
		Name:     "Google Cloud Storage Standard, us-east1, within the region, Google's pricing examples of 2026-11-26",
		Currency: "USD", Reads: 0.0004, Lists: 0.005, Writes: 0.005, Stored: 0.020,
	},
}

// For returns the prices for the store of a URI: those of the file, else of the file that Variable names, else the
// list's; nil where there are none. Requests to a store on a local disk cost nothing, and it has only the prices of a
// file that is given.
func For(uri, file string) (*Table, error) {
	scheme, _, remote := strings.Cut(uri, "://")
	if !remote || scheme == "file" {
		if file == "" {
			return nil, nil
		}
		t, err := Load(file)
		if err != nil {
			return nil, err
		}
		of := t.Name + "; requests to this machine cost nothing"
		return &Table{Name: of, Currency: t.Currency, Stored: t.Stored}, nil
	}
	if file == "" {
		file = os.Getenv(Variable)
	}
	if file != "" {
		return Load(file)
	}
	if t, ok := lists[scheme]; ok {
		return &t, nil
	}
	return nil, nil
}

// Load reads a file of prices: a JSON object.
func Load(file string) (*Table, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	t, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("prices of %s: %w", file, err)
	}
	return t, nil
}

func parse(text []byte) (*Table, error) {
	t := &Table{Currency: "USD"}
	texts := map[string]*string{"name": &t.Name, "currency": &t.Currency}
	numbers := map[string]*float64{
		"reads_per_1000": &t.Reads, "lists_per_1000": &t.Lists, "writes_per_1000": &t.Writes,
		"deletes_per_1000": &t.Deletes, "down_per_gb": &t.Down, "stored_per_gb_month": &t.Stored,
	}
	var known []string
	for name := range texts {
		known = append(known, name)
	}
	for name := range numbers {
		known = append(known, name)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil, errors.New("want a JSON object")
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("at byte %d: %w", d.InputOffset(), err)
		}
		name := key.(string) // of an object's member
		switch text, number := texts[name], numbers[name]; {
		case seen[name]:
			return nil, fmt.Errorf("%s is there twice", name)
		case text != nil:
			var v *string // nil: null
			if err := d.Decode(&v); err != nil || v == nil || *v == "" {
				return nil, fmt.Errorf("%s: want a text", name)
			}
			*text = *v
		case number != nil:
			var v *float64
			if err := d.Decode(&v); err != nil || v == nil || *v < 0 { // JSON has no NaN, and 1e999 is an error
				return nil, fmt.Errorf("%s: want a number, 0 or more", name)
			}
			*number = *v
		default:
			return nil, fmt.Errorf("no such price: %.100q%s", name, suggest.Hint(name, known))
		}
		seen[name] = true
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("at byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON object")
	}
	for _, name := range [...]string{"name", "reads_per_1000", "lists_per_1000", "writes_per_1000"} {
		if !seen[name] {
			return nil, fmt.Errorf("%s is missing", name)
		}
	}
	return t, nil
}

// Cost returns what traffic costs.
func (t *Table) Cost(x object.Traffic) float64 {
	return (float64(x.Reads)*t.Reads+float64(x.Lists)*t.Lists+float64(x.Writes)*t.Writes+
		float64(x.Deletes)*t.Deletes)/1000 + float64(x.BytesDown)/gb*t.Down
}

// Month returns what it costs to keep bytes for a month.
func (t *Table) Month(bytes uint64) float64 { return float64(bytes) / gb * t.Stored }

// Text prints an amount: with cents, and less than one with two digits that count.
func Text(amount float64, currency string) string {
	digits := 2
	if amount > 0 && amount < 1 {
		digits = 1 - int(math.Floor(math.Log10(amount)))
	}
	return strconv.FormatFloat(amount, 'f', digits, 64) + " " + currency
}
