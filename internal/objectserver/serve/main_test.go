package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dsistore/dsistore/internal/objectserver"
)

// Each line makes requests as slow as it says, and is answered with what was counted since the line before.
func TestSlow(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "12345")
	}))
	defer server.Close()
	proxy := objectserver.StartProxy(t, server.URL)
	lines, commands := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- slow(proxy, lines, out) }()
	read := bufio.NewReader(answers)
	say := func(line, want string) {
		t.Helper()
		if _, err := fmt.Fprintln(commands, line); err != nil {
			t.Fatal(err)
		}
		if got, err := read.ReadString('\n'); err != nil || got != want+"\n" {
			t.Errorf("%s: %q, %v; want %s", line, got, err, want)
		}
	}
	get := func() time.Duration {
		begin := time.Now()
		answer, err := http.Get(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
	say("20ms", `{"bytes":0,"requests":0}`)
	for range 2 {
		if d := get(); d < 20*time.Millisecond {
			t.Errorf("a request took %v; want 20 ms at least", d)
		}
	}
	say("0ms", `{"bytes":10,"requests":2}`)
	get()
	say("0ms", `{"bytes":5,"requests":1}`)
	commands.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
