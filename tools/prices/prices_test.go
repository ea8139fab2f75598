package prices

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

const whole = `{"name": "ours", "currency": "EUR", "reads_per_1000": 0.001, "lists_per_1000": 0.01,
	"writes_per_1000": 0.1, "deletes_per_1000": 1, "down_per_gb": 0.5, "stored_per_gb_month": 0.02}`

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCost(t *testing.T) {
	p, err := Load(write(t, whole))
	if err != nil || p.Name != "ours" {
		t.Fatal(p, err)
	}
	for _, x := range []struct {
		of   object.Traffic
		want float64
	}{
		{object.Traffic{}, 0},
		{object.Traffic{Reads: 3000}, 0.003}, {object.Traffic{Lists: 10}, 0.0001}, {object.Traffic{Writes: 1}, 0.0001},
		{object.Traffic{Deletes: 500}, 0.5}, {object.Traffic{BytesDown: 3 << 29}, 0.75},
		{object.Traffic{BytesUp: 1 << 40, BytesCached: 1 << 40, Unserved: 9}, 0},
		{object.Traffic{Reads: 1000, Lists: 1000, Writes: 1000, Deletes: 1000, BytesDown: 1 << 30}, 1.611},
	} {
		if got := p.Cost(x.of); math.Abs(got-x.want) > 1e-12 {
			t.Errorf("%+v costs %v, want %v", x.of, got, x.want)
		}
	}
	if got := p.Month(50 << 30); math.Abs(got-1) > 1e-12 {
		t.Errorf("50 GB cost %v a month", got)
	}
	for amount, want := range map[float64]string{
		0: "0.00 EUR", 12.345: "12.35 EUR", 1: "1.00 EUR", 0.5: "0.50 EUR", 0.0123: "0.012 EUR",
		0.00000812: "0.0000081 EUR",
	} {
		if got := Text(amount, p.Currency); got != want {
			t.Errorf("%v is printed as %s, want %s", amount, got, want)
		}
	}
}

// A file that is wrong is told, with its name and the field's.
func TestWrongFiles(t *testing.T) {
	for text, want := range map[string]string{
		strings.Replace(whole, "0.001", "-1", 1):                      "reads_per_1000: want a number",
		strings.Replace(whole, "0.001", "NaN", 1):                     "reads_per_1000: want a number",
		strings.Replace(whole, "0.5", `"NaN"`, 1):                     "down_per_gb: want a number",
		strings.Replace(whole, "0.02", "null", 1):                     "stored_per_gb_month: want a number",
		strings.Replace(whole, "0.01,", "1e999,", 1):                  "lists_per_1000: want a number",
		strings.Replace(whole, `"ours"`, `""`, 1):                     "name: want a text",
		strings.Replace(whole, `"ours"`, `7`, 1):                      "name: want a text",
		strings.Replace(whole, "down_per_gb", "down_per_gbyte", 1):    `"down_per_gbyte"; did you mean "down_per_gb"`,
		strings.Replace(whole, "lists_per_1000", "reads_per_1000", 1): "reads_per_1000 is there twice",
		strings.Replace(whole, `"writes_per_1000": 0.1, `, "", 1):     "writes_per_1000 is missing",
		strings.Replace(whole, `"name": "ours", `, "", 1):             "name is missing",
		"": "want a JSON object", "[]": "want a JSON object", whole[:40]: "at byte", whole + "{}": "something follows",
	} {
		file := write(t, text)
		if p, err := Load(file); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), file) {
			t.Errorf("%s: %+v, %v; want %s", text, p, err, want)
		}
	}
	_, err := Load(filepath.Join(t.TempDir(), "none.json"))
	if err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Error(err)
	}
}

// The flag goes before the environment, and that before the lists. A list says of what and when it is.
func TestFor(t *testing.T) {
	flag, env := write(t, whole), write(t, strings.Replace(whole, "ours", "theirs", 1))
	check := func(uri, file, want string) {
		t.Helper()
		p, err := For(uri, file)
		if err != nil || p == nil && want != "" || p != nil && (want == "" || !strings.Contains(p.Name, want)) {
			t.Errorf("%s, %s: %+v, %v; want %s", uri, file, p, err, want)
		}
	}
	t.Setenv(Variable, "")
	check("/data/store", "", "")
	check("file:///data/store", "", "")
	check("s3://b/p", "", "Amazon S3 Standard, us-east-1")
	check("gs://b/p", "", "Google Cloud Storage Standard, us-east1")
	check("az://c/p", "", "")
	check("az://c/p", flag, "ours")
	t.Setenv(Variable, env)
	check("/data/store", "", "")
	check("s3://b/p", "", "theirs")
	check("s3://b/p", flag, "ours")
	p, err := For("/data/store", flag)
	if err != nil || p.Stored == 0 || p.Reads+p.Lists+p.Writes+p.Deletes+p.Down != 0 ||
		!strings.Contains(p.Name, "ours") {
		t.Errorf("%+v, %v", p, err)
	}
	for scheme, p := range lists {
		if !strings.Contains(p.Name, "2026") || p.Reads <= 0 || p.Lists <= 0 || p.Writes <= 0 || p.Stored <= 0 {
			t.Errorf("%s: %+v", scheme, p)
		}
	}
}
