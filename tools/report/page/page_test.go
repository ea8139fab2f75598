package page_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/tools/report"
	"github.com/dsistore/dsistore/tools/report/page"
	"github.com/dsistore/dsistore/tools/report/page/pagetest"
)

// untrusted are names that mean something to HTML, JavaScript, CSS or an address.
var untrusted = []string{
	`</script><script>document.title = "run"</script>`,
	`<!--<script>`,
	`"><img src=x onerror="document.title='run'">`,
	"line\u2028end",
	`a&amp;b`,
	`%zz#feature=x&group`,
	`'; document.title='run'; '`,
	"{{library}}",
	`__proto__`,
	"\x00\x1b[31m",
	"a.b.c",
}

// untrustedReport is a report with these names everywhere that a name can be.
func untrustedReport() *report.Report {
	r := pagetest.Report(3, 60)
	t := &r.Tables[0]
	for i, name := range untrusted {
		f := &t.Features[i]
		f.Name, f.Group, f.Kind, f.Origin = name, untrusted[0], name, name
		f.Encodings = []report.StreamEncoding{{Stream: name, Encoding: name}}
	}
	t.Groups = append(t.Groups, report.Group{Group: untrusted[0], Features: untrusted})
	t.Advice[0].Features, t.Advice[0].Text, t.Advice[0].Command = untrusted, untrusted[0], untrusted[2]
	t.Jobs[0].Job, t.Jobs[0].User = untrusted[0], untrusted[2]
	t.Table, r.Store = untrusted[0], untrusted[2]
	t.Savings.Causes[0].Meaning, t.Savings.Overlays[0].Overlay = untrusted[0], untrusted[2]
	t.Health.Leases[0].Owner = untrusted[2]
	return r
}

func write(t testing.TB, r *report.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := page.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var dataScript = regexp.MustCompile(`(?s)<script type="application/json" id="report">(.*?)</script>`)

// TestReportIsInPage: what lies in the page is the report, as dsistat --json prints it, but for numbers that are
// rounded.
func TestReportIsInPage(t *testing.T) {
	for name, r := range map[string]*report.Report{"made up": pagetest.Report(1, 200), "untrusted": untrustedReport(),
		"no tables": {Tables: []report.Table{}}, "empty table": {Tables: []report.Table{{}}}} {
		t.Run(name, func(t *testing.T) {
			found := dataScript.FindStringSubmatch(write(t, r))
			if found == nil {
				t.Fatal("no report in the page")
			}
			var got, want map[string]any
			if err := json.Unmarshal([]byte(found[1]), &got); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			for _, table := range got["tables"].([]any) {
				table := table.(map[string]any)
				table["features"] = rows(t, table["features"].(map[string]any))
			}
			for _, table := range want["tables"].([]any) {
				table := table.(map[string]any)
				if table["features"] == nil {
					table["features"] = []any{} // a nil slice
				}
				for _, f := range table["features"].([]any) {
					if f := f.(map[string]any); len(f["saved"].(map[string]any)) == 0 {
						delete(f, "saved") // the page makes it
					}
				}
			}
			same(t, "report", got, want)
		})
	}
}

// rows makes the features of the columns, as the page does.
func rows(t *testing.T, table map[string]any) []any {
	t.Helper()
	n := int(table["rows"].(float64))
	out := []any{}
	for range n {
		out = append(out, map[string]any{})
	}
	for key, c := range table["columns"].(map[string]any) {
		values := make([]any, n)
		switch c := c.(type) {
		case []any:
			if values = c; len(c) != n {
				t.Fatalf("%s has %d values of %d", key, len(c), n)
			}
		case map[string]any:
			for i := range values {
				values[i] = c["all"]
				if at, ok := c["at"]; ok {
					values[i] = c["of"].([]any)[int(at.([]any)[i].(float64))]
				}
			}
		}
		path := strings.Split(key, ".")
		for i, value := range values {
			at := out[i].(map[string]any)
			if value == nil {
				continue
			}
			for _, outer := range path[:len(path)-1] {
				if at[outer] == nil {
					at[outer] = map[string]any{}
				}
				at = at[outer].(map[string]any)
			}
			at[path[len(path)-1]] = value
		}
	}
	return out
}

func same(t *testing.T, place string, got, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		got, _ := got.(map[string]any)
		for key := range want {
			same(t, place+"."+key, got[key], want[key])
		}
		for key := range got {
			if _, ok := want[key]; !ok {
				t.Errorf("%s.%s is in the page only", place, key)
			}
		}
	case []any:
		got, _ := got.([]any)
		if len(got) != len(want) {
			t.Fatalf("%s: %d elements, want %d", place, len(got), len(want))
		}
		for i := range want {
			same(t, place, got[i], want[i])
		}
	case float64:
		if got, ok := got.(float64); !ok || got != want && (want == math.Trunc(want) ||
			math.Abs(got-want) > 1e-5*math.Abs(want)) {
			t.Errorf("%s is %v, want %v", place, got, want)
		}
	default:
		if got != want {
			t.Errorf("%s is %q, want %q", place, got, want)
		}
	}
}

// TestNothingEscapes: whatever features are called, the page has its own elements and no others, and its policy allows
// just these.
func TestNothingEscapes(t *testing.T) {
	tags := regexp.MustCompile(`(?i)<(/?[a-z!][a-z-]*)`)
	// The scripts may hold "<" in strings and comparisons; the browser's test says how they are parsed.
	outline := func(p string) []string {
		p = regexp.MustCompile(`(?s)<script>.*?</script>`).ReplaceAllString(p, "<script></script>")
		return tags.FindAllString(p, -1)
	}
	plain, bad := write(t, pagetest.Report(3, 60)), write(t, untrustedReport())
	if got, want := outline(bad), outline(plain); strings.Join(got, "") != strings.Join(want, "") {
		t.Errorf("elements are\n%q\nwant\n%q", got, want)
	}
	if strings.Count(bad, "</script") != 3 {
		t.Errorf("%d ends of scripts, want 3", strings.Count(bad, "</script"))
	}
	inline := regexp.MustCompile(`(?s)<script>(.*?)</script>|<style>(.*?)</style>`)
	for _, part := range inline.FindAllStringSubmatch(bad, -1) {
		sum := sha256.Sum256([]byte(part[1] + part[2]))
		if hash := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(bad, hash) {
			t.Errorf("the policy has no %s, of %.40q", hash, part[0])
		}
	}
	if strings.Contains(bad, "unsafe-") {
		t.Error("the policy has an unsafe exception")
	}
}

// TestAsset: the library is the one that asset.json names, and its licence is in the page.
func TestAsset(t *testing.T) {
	library, err := os.ReadFile("assets/d3.min.js")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("assets/asset.json")
	if err != nil {
		t.Fatal(err)
	}
	var asset struct{ SHA256 string }
	if err := json.Unmarshal(text, &asset); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(bytes.ReplaceAll(library, []byte("\r\n"), []byte("\n")))
	if got := hex.EncodeToString(sum[:]); got != asset.SHA256 {
		t.Errorf("d3.min.js is %s, want %s", got, asset.SHA256)
	}
	if p := write(t, pagetest.Report(1, 20)); !strings.Contains(p,
		"Permission to use, copy, modify, and/or distribute this software") {
		t.Error("the library's licence is not in the page")
	}
}

// TestMadeUpReport: what the other tests are made on hangs together.
func TestMadeUpReport(t *testing.T) {
	for seed := range uint64(4) {
		s := pagetest.Report(seed, 300).Tables[0].Savings
		left := int64(s.RawBytes)
		for _, c := range s.Causes {
			left -= c.Bytes
		}
		if left != int64(s.StoredBytes) || left <= 0 {
			t.Errorf("seed %d: causes leave %d bytes of %d stored", seed, left, s.StoredBytes)
		}
	}
	a, _ := json.Marshal(pagetest.Report(5, 300))
	b, _ := json.Marshal(pagetest.Report(5, 300))
	if !bytes.Equal(a, b) {
		t.Error("a seed makes different reports")
	}
}
