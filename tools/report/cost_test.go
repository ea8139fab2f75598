package report

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// What reads cost is that of the requests and bytes of their records, for a month as long as the days of the records;
// features and jobs have their parts.
func TestCost(t *testing.T) {
	s, _, summary := small(t)
	plain := build(t, s, Options{Usage: reads(summary)})
	if plain.Cost != nil || plain.Jobs[0].ReadsMonth != 0 || plain.Features[0].StoredMonth != 0 {
		t.Errorf("without prices: %+v", plain.Cost)
	}
	r := build(t, s, Options{Usage: reads(summary), Prices: testPrices})
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	const days = 13 // from the 10th to the 22nd
	c := r.Cost
	if c == nil || c.Prices != "ours" || c.Currency != "EUR" || c.Days != days {
		t.Fatalf("%+v", c)
	}
	of := 13*0.001 + 2*0.01 + 1 // reads, lists, and a MiB of a GB for 1024
	near("reads", c.Reads, of)
	near("a month of them", c.ReadsMonth, of*30/days)
	near("stored", c.StoredMonth, float64(r.Summary.StoredBytes+r.Summary.LayerBytes)/1024)
	near("train", r.Jobs[0].ReadsMonth, (10*0.001+2*0.01+1)*30/days)
	near("look", r.Jobs[1].ReadsMonth, 3*0.001*30/days)
	sum := 0.0
	for _, f := range r.Features {
		near(f.Name+" stored", f.StoredMonth, float64(f.StoredBytes+f.LayerBytes)/1024)
		if f.Name == "items" {
			near("items", f.ReadsMonth, c.ReadsMonth*890/1100)
		}
		sum += f.ReadsMonth
	}
	near("all features", sum, c.ReadsMonth)

	text := func(sections []Section, err error) (out string) {
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sections {
			for _, f := range s.Facts {
				out += f[0] + ": " + f[1] + "\n"
			}
			if s.Listing != nil {
				out += strings.Join(s.Listing.Names, " ") + "\n"
			}
		}
		return out
	}
	summaryText := text(SummaryView(r, ViewOptions{}))
	for _, want := range []string{
		"EUR to store the newest snapshot, 2.38 EUR to read, if 30 days are like the last 13 days, without " +
			"opening tables and writing usage records (ours)",
		"sent: 13 reads, 2 lists; 1.00 MiB down, 50 B from",
	} {
		if !strings.Contains(summaryText, want) {
			t.Errorf("%s is not in\n%s", want, summaryText)
		}
	}
	for name, view := range map[string]View{"features": featuresView, "jobs": jobsView} {
		if with := text(view(r, ViewOptions{})); !strings.Contains(with, "reads/month") {
			t.Errorf("%s: %s", name, with)
		}
		sections, err := view(plain, ViewOptions{})
		if with := text(sections, err); strings.Contains(with, "reads/month") ||
			!slices.Contains(sections[0].Listing.Keys, "reads_month") {
			t.Errorf("%s without prices: %s", name, with)
		}
	}
}

// What all tables cost is the sum, of those whose cost is known.
func TestCostOfTables(t *testing.T) {
	r := Report{Tables: []Table{{Cost: &Cost{Prices: "ours", Currency: "EUR", Days: 3, Reads: 1, ReadsMonth: 10,
		StoredMonth: 100}}, {}, {Cost: &Cost{Prices: "ours", Currency: "EUR", Days: 2, Reads: 2, ReadsMonth: 30,
		StoredMonth: 50}}}}
	r.cost()
	want := Cost{Prices: "ours", Currency: "EUR", Days: 3, Reads: 3, ReadsMonth: 40, StoredMonth: 150}
	if r.Cost == nil || *r.Cost != want || r.Tables[0].Cost.Reads != 1 {
		t.Errorf("%+v, want %+v", r.Cost, want)
	}
	// What reads cost is not known of a table without usage records.
	r.Tables[2].Cost.Days = 0
	l, err := Tables(&r, ViewOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(l.Names, "reads/month")
	if got := [3]string{l.Rows[0][at], l.Rows[1][at], l.Rows[2][at]}; got != [3]string{"10.00 EUR", "", ""} {
		t.Errorf("%q", got)
	}
	if i := slices.Index(l.Keys, "reads_month"); l.Values[0][i] != "10" || l.Values[1][i]+l.Values[2][i] != "" {
		t.Errorf("%q", l.Values)
	}
	features, err := featuresView(&Table{Features: []Feature{{Name: "a"}}, Cost: r.Tables[2].Cost}, ViewOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if names := features[0].Listing.Names; slices.Contains(names, "reads/month") ||
		!slices.Contains(names, "stored/month") {
		t.Errorf("%q", names)
	}
	r = Report{Tables: []Table{{}}}
	if r.cost(); r.Cost != nil {
		t.Errorf("%+v", r.Cost)
	}
}

// TestCostFacts: the line says that the requests that usage records do not have are missing from it.
func TestCostFacts(t *testing.T) {
	c := &Cost{Prices: "ours", Currency: "EUR", Days: 1}
	want := "if 30 days are like the last 1 day, without opening tables and writing usage records (ours)"
	if got := c.Facts()[0][1]; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want its end to be %q", got, want)
	}
}
