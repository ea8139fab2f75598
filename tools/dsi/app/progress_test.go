package app

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// The bar of each phase says what it is, how much is done and how fast, in the phase's unit.
func TestProgressShowsRates(t *testing.T) {
	var out bytes.Buffer
	p := &Progress{out: &out, what: "reading", unit: UnitBytes}
	p.begin()
	show := func(u Unit, what string, want string) {
		t.Helper()
		out.Reset()
		for done := int64(0); done <= 60; done += 20 {
			p.PhaseIn(u, what, done<<20, 100<<20)
		}
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the bar of %s in %s is %q, want %s", what, u, lastLine(out.String()), want)
		}
	}
	show(UnitBytes, "reading", `reading +60% .*\(60/100 MiB, [0-9.]+ [KMGTPE]iB/s\)`)
	show(UnitSamples, "writing", `writing +60% .*\(62914560/104857600, [0-9]+ samples/s\)`)
	show(UnitBytes, "carrying", `carrying +60% .*\(60/100 MiB, [0-9.]+ [KMGTPE]iB/s\)`)
	p.Finish()
	out.Reset()
	p.Set(1, 2)
	p.Finish()
	if out.Len() > 0 {
		t.Errorf("after the end: %q", out.String())
	}
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\r')+1:] }
