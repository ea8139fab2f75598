package main

import (
	"strings"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	tests := []struct {
		text string
		want size
	}{
		{"512MiB", 512 << 20}, {"1GiB", 1 << 30}, {"4g", 4 << 30}, {"1.5T", 3 << 39}, {"250MB", 250e6}, {"250 mb", 250e6},
		{"1048576", 1 << 20}, {"64k", 64 << 10}, {"7b", 7},
	}
	for _, test := range tests {
		var s size
		if err := s.UnmarshalText([]byte(test.text)); err != nil || s != test.want {
			t.Errorf("%q is %d (%v), want %d", test.text, s, err, test.want)
		}
	}
	for _, bad := range []string{"", "0", "g", "-1g", "1x", "1.2.3g", "1e3", "NaN", "Inf", "9999999999999999999t", "0.1"} {
		var s size
		if err := s.UnmarshalText([]byte(bad)); err == nil || !strings.Contains(err.Error(), "want a number and a unit") {
			t.Errorf("%q is %d (%v), want an error", bad, s, err)
		}
	}
}

func TestMoment(t *testing.T) {
	at := time.Date(2026, 11, 1, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		text string
		want moment
	}{
		{"17", moment{number: 17}},
		{"2026-11-01T03:04:05Z", moment{time: at}},
		{"2026-11-01T05:04:05+02:00", moment{time: at}},
		{"2026-11-01T03:04:05", moment{time: at}},
		{"2026-11-01 03:04:05", moment{time: at}},
		{"2026-11-01 03:04", moment{time: at.Truncate(time.Minute)}},
		{"2026-11-01", moment{time: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}},
	}
	for _, test := range tests {
		var m moment
		if err := m.UnmarshalText([]byte(test.text)); err != nil || m.number != test.want.number || !m.time.Equal(test.want.time) {
			t.Errorf("%q is %v (%v), want %v", test.text, m, err, test.want)
		}
	}
	for _, bad := range []string{"", "0", "-1", "yesterday", "2026-13-01", "11/01/2026"} {
		var m moment
		if err := m.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is %v, want an error", bad, m)
		}
	}
}
