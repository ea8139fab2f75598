package app

import (
	"strings"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	tests := []struct {
		text string
		want Size
	}{
		{"512MiB", 512 << 20}, {"1GiB", 1 << 30}, {"4g", 4 << 30}, {"1.5T", 3 << 39}, {"250MB", 250e6},
		{"250 mb", 250e6},
		{"1048576", 1 << 20}, {"64k", 64 << 10}, {"7b", 7},
	}
	for _, test := range tests {
		var s Size
		if err := s.UnmarshalText([]byte(test.text)); err != nil || s != test.want {
			t.Errorf("%q is %d (%v), want %d", test.text, s, err, test.want)
		}
	}
	for _, bad := range []string{"", "0", "g", "-1g", "1x", "1.2.3g", "1e3", "NaN", "Inf", "9999999999999999999t",
		"0.1"} {
		var s Size
		if err := s.UnmarshalText([]byte(bad)); err == nil ||
			!strings.Contains(err.Error(), "want a number and a unit") {
			t.Errorf("%q is %d (%v), want an error", bad, s, err)
		}
	}
}

func TestPeriod(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "15m": 15 * time.Minute, "24h": 24 * time.Hour, "1h30m": 90 * time.Minute,
		"7d": 168 * time.Hour, "400d": 9600 * time.Hour, "0s": 0, "0d": 0, "-1h": -time.Hour, "-2d": -48 * time.Hour,
	} {
		var p Period
		if err := p.UnmarshalText([]byte(text)); err != nil || time.Duration(p) != want {
			t.Errorf("%q is %v (%v), want %v", text, p, err, want)
		}
	}
	for _, bad := range []string{"", "7", "d", "7 d", "7days", "1d12h", "1.5d", "yesterday", "99999d",
		"9999999999999999999d"} {
		var p Period
		if err := p.UnmarshalText([]byte(bad)); err == nil || !strings.Contains(err.Error(), ": want ") {
			t.Errorf("%q is %v (%v), want an error", bad, p, err)
		}
	}
}

func TestMoment(t *testing.T) {
	at := time.Date(2026, 11, 1, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		text string
		want Moment
	}{
		{"17", Moment{Number: 17}},
		{"2026-11-01T03:04:05Z", Moment{Time: at}},
		{"2026-11-01T05:04:05+02:00", Moment{Time: at}},
		{"2026-11-01T03:04:05", Moment{Time: at}},
		{"2026-11-01 03:04:05", Moment{Time: at}},
		{"2026-11-01 03:04", Moment{Time: at.Truncate(time.Minute)}},
		{"2026-11-01", Moment{Time: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}},
	}
	for _, test := range tests {
		var m Moment
		if err := m.UnmarshalText([]byte(test.text)); err != nil || m.Number != test.want.Number ||
			!m.Time.Equal(test.want.Time) {
			t.Errorf("%q is %v (%v), want %v", test.text, m, err, test.want)
		}
	}
	for _, bad := range []string{"", "0", "-1", "yesterday", "2026-13-01", "11/01/2026"} {
		var m Moment
		if err := m.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is %v, want an error", bad, m)
		}
	}
}
