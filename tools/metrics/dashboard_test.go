package metrics_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A query is what docs/reference/grafana.json asks Prometheus for.
type query struct{ panel, expr string }

func queries(t *testing.T) []query {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "grafana.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	var out []query
	for _, p := range board.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %s asks for nothing", p.Title)
		}
		for _, x := range p.Targets {
			out = append(out, query{p.Title, x.Expr})
		}
	}
	for _, v := range board.Templating.List {
		var q struct{ Query string }
		if json.Unmarshal(v.Query, &q) == nil {
			out = append(out, query{"variable " + v.Name, q.Query})
		}
	}
	return out
}

var (
	stringLiteral = regexp.MustCompile(`"[^"]*"`)
	rangeSelector = regexp.MustCompile(`\[[^\]]*\]`)
	selector      = regexp.MustCompile(`([a-z_0-9]*)\{([^}]*)\}`)
	labelMatcher  = regexp.MustCompile(`([a-z_]+) *(?:=~|!~|!=|=)`)
	grouping      = regexp.MustCompile(`\b(?:by|without|on|ignoring) *\(([^)]*)\)`)
	labelValues   = regexp.MustCompile(`^label_values\(([a-z_]+), *([a-z_]+)\)$`)
	identifier    = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
)

// promql are the functions and words of PromQL that the dashboard uses.
var promql = map[string]bool{"sum": true, "avg": true, "max": true, "count": true, "rate": true, "increase": true,
	"and": true}

// names returns the metrics that a query is about, and the labels that it knows of.
func names(expr string) (metrics, labels []string) {
	if m := labelValues.FindStringSubmatch(expr); m != nil {
		return []string{m[1]}, []string{m[2]}
	}
	expr = stringLiteral.ReplaceAllString(expr, "")
	expr = rangeSelector.ReplaceAllString(expr, "")
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		for _, l := range labelMatcher.FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, l[1])
		}
	}
	expr = selector.ReplaceAllString(expr, "$1")
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			labels = append(labels, strings.TrimSpace(l))
		}
	}
	expr = grouping.ReplaceAllString(expr, "")
	for _, x := range identifier.FindAllString(expr, -1) {
		if !promql[x] {
			metrics = append(metrics, x)
		}
	}
	return metrics, labels
}

// Every query of the dashboard is about metrics that a process really exports, by labels that they have; and each
// metric of ours has its place there.
func TestDashboardAsksForWhatIsExported(t *testing.T) {
	w := work(t)
	send(t, "dashboard")
	exported := scrape(t, w.url)
	labelsOf := map[string]map[string]bool{}
	for name, f := range exported {
		labelsOf[name] = map[string]bool{"job": true, "instance": true} // which Prometheus adds
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labelsOf[name][l.GetName()] = true
			}
		}
	}
	asked := map[string]bool{}
	for _, q := range queries(t) {
		metrics, labels := names(q.expr)
		if len(metrics) == 0 {
			t.Errorf("%s: no metric in %s", q.panel, q.expr)
		}
		for _, m := range metrics {
			asked[m] = true
			if labelsOf[m] == nil {
				t.Errorf("%s: nothing exports %s", q.panel, m)
			}
		}
		for _, l := range labels {
			known := false
			for _, m := range metrics {
				known = known || labelsOf[m][l]
			}
			if !known {
				t.Errorf("%s: none of %v has a label %s", q.panel, metrics, l)
			}
		}
	}
	for name := range exported {
		if strings.HasPrefix(name, "dsi_") && !asked[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// The reading of queries finds what is in them.
func TestNamesOfAQuery(t *testing.T) {
	metrics, labels := names(`sum by (op, code) (rate(a_total{job=~"$job", code!="ok"}[$__rate_interval])) / ` +
		`sum(b{x="y z"}) and on (instance) c`)
	if got := strings.Join(metrics, " ") + "; " +
		strings.Join(labels, " "); got != "a_total b c; job code x op code instance" {
		t.Error(got)
	}
}
