package page_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/browser"
	"github.com/dsistore/dsistore/tools/report"
	"github.com/dsistore/dsistore/tools/report/page/pagetest"
)

// chromium is started once for all tests, and ended after them.
var chromium struct {
	sync.Once
	b   *browser.Browser
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if chromium.b != nil {
		if err := chromium.b.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "browser:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// A tab shows a page to a test. It ends the test when anything goes wrong, and when the page has complained or asked
// the network for anything.
type tab struct {
	*browser.Page
	t   *testing.T
	ctx context.Context
}

func open(t *testing.T, r *report.Report) *tab {
	t.Helper()
	path, err := browser.Find()
	if err != nil {
		t.Skipf("THE PAGE IS NOT TESTED IN A BROWSER: %v", err)
	}
	chromium.Do(func() { chromium.b, chromium.err = browser.Start(path) })
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	p, err := chromium.b.NewPage(ctx, 1280, 900)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dsistat.html")
	if err := os.WriteFile(file, []byte(write(t, r)), 0o644); err != nil {
		t.Fatal(err)
	}
	address := (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String()
	w := &tab{p, t, ctx}
	w.do(p.Media(ctx, "screen", "light"))
	w.do(p.Open(ctx, address))
	t.Cleanup(func() {
		if got := p.Messages(); len(got) > 0 {
			t.Errorf("the page complains:\n%s", strings.Join(got, "\n"))
		}
		for _, request := range p.Requests() {
			if !strings.HasPrefix(request, address) && request != "data:," {
				t.Errorf("the page asks for %.200s", request)
			}
		}
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *tab) do(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// value computes an expression in the page, in which $ finds an element and $$ all of them.
func value[T any](w *tab, expression string) (v T) {
	w.t.Helper()
	w.do(w.WaitForFrame(w.ctx))
	w.do(
		w.Eval(
			w.ctx,
			"(() => { const $ = (s) => document.querySelector(s), $$ = (s) => [...document.querySelectorAll(s)]; "+
				"return "+expression+" })()",
			&v,
		),
	)
	return v
}

// middle brings an element into sight and returns the point in its middle.
func (w *tab) middle(selector string) (x, y float64) {
	w.t.Helper()
	value[bool](w, fmt.Sprintf("($(%q).scrollIntoView({block: 'center'}), true)", selector))
	at := value[[]float64](
		w,
		fmt.Sprintf("(() => { const b = $(%q).getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / "+
			"2] })()", selector),
	)
	return at[0], at[1]
}

// wait lets the page's own timers run.
func (w *tab) click(selector string) {
	w.t.Helper()
	x, y := w.middle(selector)
	w.do(w.Click(w.ctx, x, y))
}

func (w *tab) want(what string, got, want any) {
	w.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// becomes waits until an expression has a value, which follows from what the browser does at a time of its own.
func becomes[T any](w *tab, what, expression string, want T) {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		got := value[T](w, expression)
		if reflect.DeepEqual(got, want) {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%s: %v, want %v", what, got, want)
		}
		w.do(w.Eval(w.ctx, "new Promise((done) => setTimeout(done, 5))", nil))
	}
}

const shownNames = `$$('#features tbody.body tr td:first-child').map((td) => td.textContent)`

// TestSearch: words, globs, the kind and the use say what is in the table, and the sums beside it are of that.
func TestSearch(t *testing.T) {
	r := pagetest.Report(1, 300)
	features := r.Tables[0].Features
	w := open(t, r)
	like := func(test func(f *report.Feature) bool) (n int, stored uint64) {
		for i := range features {
			if test(&features[i]) {
				n++
				stored += features[i].StoredBytes
			}
		}
		return n, stored
	}
	search := func(text string) (rows int, names []string) {
		w.do(w.Eval(w.ctx, `document.querySelector('#features input').value = ''; `+
			`document.querySelector('#features input').focus()`, nil))
		w.do(w.Type(w.ctx, text))
		return value[int](w, `Number($('#features table').getAttribute('aria-rowcount')) - 1`),
			value[[]string](w, shownNames)
	}
	for text, test := range map[string]func(f *report.Feature) bool{
		"user clicks": func(f *report.Feature) bool {
			return strings.Contains(f.Name, "user") && strings.Contains(f.Name, "clicks")
		},
		"USER_*_7d_*": func(f *report.Feature) bool {
			return strings.HasPrefix(f.Name, "user_") && strings.Contains(f.Name, "_7d_")
		},
		"session_id": func(f *report.Feature) bool { return f.Name == "session_id" },
		"a(b[c":      func(f *report.Feature) bool { return false },
		"weighted":   func(f *report.Feature) bool { return f.Kind == "weighted" },
	} {
		want, _ := like(test)
		n, names := search(text)
		w.want("rows of "+text, n, want)
		for _, name := range names {
			if i := slices.IndexFunc(features, func(f report.Feature) bool { return f.Name == name }); i < 0 ||
				!test(&features[i]) {
				t.Errorf("%s shows %s", text, name)
			}
		}
	}
	w.want("nothing found", value[bool](w, `$('#features .none').hidden`),
		value[int](w, `$$('#features tbody.body tr').length`) > 0)
	search("*")
	w.do(w.Eval(w.ctx, `(() => {
		const s = document.querySelectorAll('#features select')[1];
		s.value = 'unread';
		s.dispatchEvent(new Event('change'));
	})()`, nil))
	n, stored := like(func(f *report.Feature) bool { return f.LastRead == "" })
	text := value[string](w, `$('#features .count').textContent`)
	if !strings.HasPrefix(text, fmt.Sprintf("%d of %d features: ", n, len(features))) ||
		!strings.HasSuffix(text, "stored, 0 B read") || n == 0 ||
		stored == 0 {
		t.Errorf("unread: %q, want %d of %d features", text, n, len(features))
	}
}

// TestSort: heads sort, twice the other way round, by values and not by what is written; what is not known comes last;
// a screen reader is told.
func TestSort(t *testing.T) {
	r := pagetest.Report(2, 300)
	features := slices.Clone(r.Tables[0].Features)
	w := open(t, r)
	for column, order := range map[int]func(a, b report.Feature) int{
		6: func(a, b report.Feature) int { return compare(b.StoredBytes, a.StoredBytes) },
		9: func(a, b report.Feature) int { return compare(b.Coverage, a.Coverage) },
		4: func(a, b report.Feature) int { return compare(b.Jobs, a.Jobs) },
	} {
		head := fmt.Sprintf("#features th:nth-child(%d)", column)
		w.click(head + " button")
		w.want("aria-sort", value[string](w, `$('`+head+`').getAttribute('aria-sort')`), "descending")
		slices.SortStableFunc(features, func(a, b report.Feature) int { return strings.Compare(a.Name, b.Name) })
		slices.SortStableFunc(features, order)
		check := func() {
			t.Helper()
			for i, name := range value[[]string](w, shownNames) {
				// Names of equal values may stand in any order.
				j := slices.IndexFunc(features, func(f report.Feature) bool { return f.Name == name })
				if order(features[i], features[j]) != 0 {
					t.Fatalf("column %d, row %d: %s, want %s", column, i, name, features[i].Name)
				}
			}
		}
		check()
		w.click(head + " button")
		w.want("aria-sort", value[string](w, `$('`+head+`').getAttribute('aria-sort')`), "ascending")
		w.want("others", value[int](w, `$$('#features th:not([aria-sort=none])').length`), 1)
		slices.Reverse(features)
		check()
	}
	w.want("a screen reader hears", value[bool](w, `$('#said').textContent.startsWith('Features, sorted by')`), true)
	// By the last read: those never read are last in both directions.
	for range 2 {
		w.click("#features th:nth-child(5) button")
		w.want("the first was read", value[bool](w,
			`$('#features tbody.body tr td:nth-child(5)').textContent !== 'never'`), true)
	}
}

func compare[T uint64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// TestTooltips: a mouse and the arrow keys are told the same of every chart, and Escape takes it away.
func TestTooltips(t *testing.T) {
	w := open(t, pagetest.Report(1, 300))
	for _, chart := range []string{"savings", "popularity", "map", "trend"} {
		x, y := w.middle("#" + chart + " svg[role=img]")
		w.do(w.Move(w.ctx, x, y-30)) // in the very middle of small multiples is nothing
		if !value[bool](w, `!$('#tip').hidden && $('#tip b').textContent.length > 0 && `+
			`$('#tip dd').textContent.length > 0`) {
			t.Errorf("%s: no tooltip", chart)
		}
		out := value[[]float64](w, `(() => {
			const b = $('#tip').getBoundingClientRect();
			return [b.left, b.top, innerWidth - b.right, innerHeight - b.bottom];
		})()`)
		if slices.Min(out) < 0 {
			t.Errorf("%s: the tooltip is not within the window: %v", chart, out)
		}
		w.do(w.Move(w.ctx, 1, 1))
		w.want(chart+": tooltip hidden", value[bool](w, `$('#tip').hidden`), true)
		w.do(w.Eval(w.ctx, `document.querySelector('#`+chart+` svg[role=img]').focus()`, nil))
		for range 2 {
			w.do(w.Key(w.ctx, "ArrowRight"))
		}
		if !value[bool](w, `!$('#tip').hidden && $('#said').textContent.startsWith($('#tip b').textContent)`) {
			t.Errorf("%s: no tooltip by keys, or it is not said", chart)
		}
		w.do(w.Key(w.ctx, "Escape"))
		w.want(chart+": tooltip hidden by Escape", value[bool](w, `$('#tip').hidden`), true)
		w.want(chart+": has a label", value[bool](w,
			`$('#`+chart+` svg[role=img]').getAttribute('aria-label').length > 10`), true)
		if chart != "popularity" { // its table is always open
			w.click("#" + chart + " details.data summary")
		}
		w.want(chart+": has its figures as a table", value[bool](w, `$$('#`+chart+` table.plain tbody tr').length > 1`),
			true)
	}
}

// TestLead: the sentence at the top says what the report says, also where no feature ends at just 80 % of the traffic.
func TestLead(t *testing.T) {
	r := pagetest.Report(1, 60)
	table := &r.Tables[0]
	table.Curve.Marks = []report.CurvePoint{
		{Bytes: 0.21, Traffic: 0.55, Features: 9},
		{Bytes: 0.43, Traffic: 0.812, Features: 12},
		{Bytes: 0.9, Traffic: 0.995, Features: 30},
		{Bytes: 0.9, Traffic: 0.995, Features: 30},
	}
	table.Summary.StoredBytes, table.Summary.RawBytes, table.Summary.BytesReadShare = 3<<20, 5<<30, 0.75
	w := open(t, r)
	lead := value[string](w, `$('.lead').textContent`)
	for _, want := range []string{"5 GiB of plain numbers are stored in 3 MiB",
		"43 % of the bytes serve 81 % of what they read", "Features with 25 % of the bytes were not read",
		"since 1 Sep 2026"} {
		if !strings.Contains(lead, want) {
			t.Errorf("%q has no %q", lead, want)
		}
	}
	w.want("marks", value[[]string](w, `$$('#popularity table.plain')[0].innerText.split('\n').slice(1)
		.map((l) => l.replaceAll('\t', ' '))`), []string{"55 % 21 % 9", "81 % 43 % 12", "99.5 % 90 % 30"})
	w.want("the curve's words", value[bool](w,
		`$('#popularity svg').textContent.includes('43 % of the bytesserve 81 % of the traffic')`), true)
	causes := table.Savings.Causes
	w.want("bars", value[int](w, `$$('#savings svg rect:not(.mark):not(.hatched)').length`), len(causes)+2)
}

// TestCost: where there are prices, the page says what a month costs, of the table, in the words of the command, and of
// a feature.
func TestCost(t *testing.T) {
	r := pagetest.Report(1, 60)
	tiles := `$('.tiles').innerText.replaceAll('\n', ' ')`
	if text := value[string](open(t, r), tiles); strings.Contains(text, "month") {
		t.Errorf("costs without prices: %s", text)
	}
	table := &r.Tables[0]
	table.Cost = &report.Cost{Prices: "ours", Currency: "EUR", Days: 61, ReadsMonth: 0.01234, StoredMonth: 2.5}
	table.Features[0].StoredMonth, table.Features[0].ReadsMonth = 0.00005, 0
	w := open(t, r)
	want := "A month costs 2.51 EUR " + table.Cost.Facts()[0][1]
	if text := value[string](w, tiles); !strings.Contains(text, want) {
		t.Errorf("%q has no %q", text, want)
	}
	table.Cost.Days, table.Cost.ReadsMonth = 0, 0
	want = table.Cost.Facts()[0][1]
	if text := value[string](open(t, r), tiles); !strings.Contains(text, want) {
		t.Errorf("%q has no %q", text, want)
	}
	value[bool](w, fmt.Sprintf("(location.hash = 'feature=' + encodeURIComponent(%q), true)", table.Features[0].Name))
	text := value[string](w, `$('#features').innerText.replaceAll('\n', ' ').replaceAll('\t', ' ')`)
	if !strings.Contains(text, "to store 0.000050 EUR to read 0.00 EUR") {
		t.Errorf("the feature's costs are not in %q", text)
	}
}

// TestGroups: members of a group lead to each other and to all of them, and the browser's button back.
func TestGroups(t *testing.T) {
	r := pagetest.Report(1, 300)
	group := r.Tables[0].Groups[0]
	w := open(t, r)
	w.do(w.Eval(w.ctx, `document.querySelector('#features input').focus()`, nil))
	w.do(w.Type(w.ctx, group.Features[1]))
	w.click("#features tbody.body tr td:first-child")
	w.want("chosen", value[string](w, `$('#features .detail h3').textContent`), group.Features[1])
	becomes(w, "address", `decodeURIComponent(location.hash)`, "#feature="+group.Features[1])
	links := `$$('#features .detail a').map((a) => decodeURIComponent(a.hash)).filter((h) => h.startsWith('#feature='))`
	var others []string
	for _, name := range group.Features {
		if name != group.Features[1] {
			others = append(others, "#feature="+name)
		}
	}
	w.want("links to the others", value[[]string](w, links), others)

	w.click("#features .detail li a") // of the first member, which the search does not find: it gives way
	w.want("followed", value[string](w, `$('#features .detail h3').textContent`), group.Features[0])
	w.want("in sight", value[bool](w, `(() => {
		const b = $('#features tr.active').getBoundingClientRect();
		return b.top > 0 && b.bottom < innerHeight;
	})()`), true)
	w.do(w.Eval(w.ctx, `history.back()`, nil))
	becomes(w, "back", `$('#features .detail h3').textContent`, group.Features[1])

	w.click("#features .detail a[href^='#group=']")
	names := value[[]string](w, shownNames)
	slices.Sort(names)
	w.want("members in the table", names, group.Features)
	w.click("#features .chip")
	w.want("all again", value[int](w, `Number($('#features table').getAttribute('aria-rowcount')) - 1`), 300)
}

// TestKeys: the table is used without a mouse.
func TestKeys(t *testing.T) {
	w := open(t, pagetest.Report(1, 300))
	w.do(w.Eval(w.ctx, `document.querySelector('#features table').focus()`, nil))
	active := func() int {
		return value[int](w, `(() => {
			const t = $('#features table'), r = document.getElementById(t.getAttribute('aria-activedescendant'));
			return Number(r.getAttribute('aria-rowindex')) - 2;
		})()`)
	}
	for _, step := range []struct {
		key  string
		want int
	}{{"ArrowDown", 0}, {"ArrowDown", 1}, {"End", 299}, {"ArrowDown", 299}, {"ArrowUp", 298}, {"Home", 0},
		{"ArrowUp", 0}} {
		w.do(w.Key(w.ctx, step.key))
		w.want(step.key, active(), step.want)
	}
	w.do(w.Key(w.ctx, "PageDown"))
	if got := active(); got < 8 || got > 40 {
		t.Errorf("Page Down goes to row %d", got)
	}
	w.want("in sight", value[bool](w, `(() => {
		const r = $('#features tr.active').getBoundingClientRect();
		const b = $('#features .rows').getBoundingClientRect();
		return r.top >= b.top && r.bottom <= b.bottom + 1;
	})()`), true)
	w.do(w.Key(w.ctx, "Enter"))
	w.want("focus", value[string](w, `document.activeElement.textContent`),
		value[string](w, `$('#features tr.active td').textContent`))
	w.want("every control has a name", value[[]string](w, `$$('button, input, select, [tabindex]')
		.filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label') || e.closest('label')))
		.map((e) => e.outerHTML.slice(0, 80))`), []string{})
	w.want("headings", value[bool](w, `$$('h1').length === 1 && $$('main section')
		.every((s) => document.getElementById(s.getAttribute('aria-labelledby')).tagName === 'H2')`), true)
}

// contrast is the least contrast of a text to what is behind it, by the formula of WCAG 2.
const contrast = `(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (c) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (c) => {
    const [r, g, b] = rgb(c).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (rgb(c)[3] > 0) return c;
    }
    return 'white';
  };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05) };
  const html = $$('p, td, th, dt, dd, h1, h2, h3, li, a, button, span, summary, code')
    .filter((e) => e.getClientRects().length && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .map((e) => [ratio(getComputedStyle(e).color, behind(e)), e.outerHTML.slice(0, 90)]);
  const cells = ['recent', 'month', 'older', 'unread'].flatMap((c) => {
    const r = $('svg rect.' + c), t = $('svg text.' + c);
    return r && t ? [[ratio(getComputedStyle(t).fill, getComputedStyle(r).fill), c]] : [];
  });
  return [...html, ...cells].filter(([r]) => r < 4.5).map(([r, e]) => r.toFixed(2) + ' ' + e).slice(0, 5);
})()`

// TestColours: the system's choice counts until the switch says otherwise, and texts can be read in both.
func TestColours(t *testing.T) {
	w := open(t, pagetest.Report(1, 300))
	paper := func() string { return value[string](w, `getComputedStyle(document.body).backgroundColor`) }
	light := paper()
	w.want("texts with little contrast, light", value[[]string](w, contrast), []string{})
	w.do(w.Media(w.ctx, "screen", "dark"))
	dark := paper()
	if light == dark {
		t.Errorf("light and dark are both %s", light)
	}
	w.want("texts with little contrast, dark", value[[]string](w, contrast), []string{})
	w.click("#theme label:nth-of-type(2) span")
	w.want("switched to light", paper(), light)
	w.do(w.Media(w.ctx, "screen", "light"))
	w.click("#theme label:nth-of-type(3) span")
	w.want("switched to dark", paper(), dark)
	w.do(w.Media(w.ctx, "print", "light"))
	w.want("printed on white", paper(), light)
	w.do(w.Media(w.ctx, "screen", "light"))
	w.click("#theme label:nth-of-type(1) span")
	w.want("back to the system's", paper(), light)
}

// TestPrint: on paper there are no controls, the first rows of a table, and charts as wide as the paper.
func TestPrint(t *testing.T) {
	w := open(t, pagetest.Report(1, 300))
	w.do(w.Media(w.ctx, "print", "dark"))
	for _, gone := range []string{"nav", ".controls", ".bar", ".detail", "details.data"} {
		w.want(gone+" on paper", value[bool](w, `$$('`+gone+`').every((e) => getComputedStyle(e).display === 'none')`),
			true)
	}
	w.want("rows on paper", value[int](w, `$$('#features tbody.body tr').length`), 60)
	w.want("what is left out is said", value[string](w, `$('#features .printed').textContent`),
		"The first 60 of 300 rows, in this order.")
	w.want("charts are drawn for paper", value[bool](w,
		`$$('svg[role=img]').every((s) => s.viewBox.baseVal.width === 700)`), true)
	pdf, err := w.PDF(w.ctx)
	w.do(err)
	if !strings.HasPrefix(string(pdf), "%PDF-") || len(pdf) < 20_000 {
		t.Errorf("printed to %d bytes", len(pdf))
	}
	w.do(w.Media(w.ctx, "screen", "light"))
	w.want("charts are drawn for the window again", value[bool](w,
		`$$('svg[role=img]').every((s) => s.viewBox.baseVal.width !== 700)`), true)
}

// TestUntrustedNames: names of any kind are text.
func TestUntrustedNames(t *testing.T) {
	r := untrustedReport()
	w := open(t, r)
	w.want("nothing of it was run", value[string](w, `document.title`), r.Tables[0].Table+" · dsistat")
	w.want(
		"no image, frame or other script",
		value[int](w, `$$('img, iframe, object, embed, link:not([rel=icon])').length * 10 + $$('script').length`),
		3,
	)
	w.want("heading", value[string](w, `$('h1').textContent`), r.Tables[0].Table)
	for _, name := range untrusted {
		w.do(w.Eval(w.ctx, fmt.Sprintf(`location.hash = '#feature=' + encodeURIComponent(%s)`, quote(name)), nil))
		becomes(w, "chosen by address", `$('#features .detail h3').textContent`, name)
	}
	w.do(w.Eval(w.ctx, `location.hash = '#feature=%zz'`, nil)) // no name at all
	w.want("still nothing was run", value[string](w, `document.title`), r.Tables[0].Table+" · dsistat")
}

// quote is a JavaScript expression of a string.
func quote(s string) string {
	return `new TextDecoder().decode(Uint8Array.from(atob('` + base64.StdEncoding.EncodeToString([]byte(s)) +
		`'), (c) => c.charCodeAt(0)))`
}

// TestTables: several tables, one without anything, and none.
func TestTables(t *testing.T) {
	r := pagetest.Report(1, 40)
	second := pagetest.Report(2, 50).Tables[0]
	second.Table = "second"
	r.Tables = append(r.Tables, second, pagetest.Empty("new"))
	w := open(t, r)
	pick := func(i int) {
		w.do(w.Eval(w.ctx, fmt.Sprintf(`(() => {
			const s = document.querySelector('#tables select');
			s.value = %d;
			s.dispatchEvent(new Event('change'));
		})()`, i), nil))
	}
	pick(1)
	w.want("heading", value[string](w, `$('h1').textContent`), "second")
	w.want("features", value[int](w, `Number($('#features table').getAttribute('aria-rowcount')) - 1`), 50)
	pick(2)
	w.want(
		"sections of an empty table",
		value[[]string](w, `$$('main section').map((s) => s.id)`),
		[]string{"all", "advice", "savings", "features", "health"},
	)
	pick(0)
	w.want("features", value[int](w, `Number($('#features table').getAttribute('aria-rowcount')) - 1`), 40)

	w.want("the list", value[[]string](w, `$$('#all a').map((a) => a.textContent)`),
		[]string{r.Tables[0].Table, "second", "new"})
	w.want("in it the one that is shown", value[[]string](w, `$$('#all a[aria-current]').map((a) => a.textContent)`),
		[]string{r.Tables[0].Table})
	w.click("#all tr:nth-child(2) a")
	w.want("chosen in the list", value[string](w, `$('h1').textContent`), "second")
	w.want("selected", value[string](w, `$('#tables select').value`), "1")
	becomes(w, "address", `location.hash`, "#table=second")
	w.do(w.Eval(w.ctx, `history.back()`, nil))
	becomes(w, "back", `$('h1').textContent`, r.Tables[0].Table)

	none := open(t, &report.Report{Tables: []report.Table{}})
	none.want("heading", value[string](none, `$('h1').textContent`), "No tables")
}

// TestManyFeatures: thousands of features cost the document no more than a hundred. The test of bench/page does it with
// 20,000.
func TestManyFeatures(t *testing.T) {
	const n = 5000
	r := pagetest.Report(1, n)
	w := open(t, r)
	count := func() int { return value[int](w, `$$('#features tbody.body tr').length`) }
	w.want("rows", value[int](w, `Number($('#features table').getAttribute('aria-rowcount')) - 1`), n)
	if nodes := value[int](w, `$$('*').length`); nodes > 8000 {
		t.Errorf("%d elements in the document", nodes)
	}
	first := value[[]string](w, shownNames)
	for _, at := range []int{100, 75_000, 149_000, 149_400, 10_000_000, 0} {
		w.do(w.Eval(w.ctx, fmt.Sprintf(`document.querySelector('#features .rows').scrollTop = %d`, at), nil))
		if got := count(); got > 48 || got < 15 {
			t.Errorf("scrolled to %d: %d rows in the document", at, got)
		}
		w.want("rows are where they should be", value[bool](w, `(() => {
			const box = $('#features .rows'), top = box.getBoundingClientRect().top, h = 30;
			return $$('#features tbody.body tr').every((tr) =>
				Math.abs(tr.getBoundingClientRect().top - top + box.scrollTop
				- 1 - h * (Number(tr.getAttribute('aria-rowindex')) - 1)) < 2);
		})()`), true)
	}
	w.want("back at the top", value[[]string](w, shownNames), first)
	w.do(w.Eval(w.ctx, `document.querySelector('#features table').focus()`, nil))
	w.do(w.Key(w.ctx, "End"))
	w.want("last row", value[string](w, `$('#features tr.active').getAttribute('aria-rowindex')`), fmt.Sprint(n+1))
}
