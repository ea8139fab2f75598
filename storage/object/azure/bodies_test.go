package azure

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/dsistore/dsistore/internal/objectserver"
)

// counting counts the bodies of answers that are open.
type counting struct {
	policy.Transporter
	open atomic.Int64
}

func (c *counting) Do(r *http.Request) (*http.Response, error) {
	answer, err := c.Transporter.Do(r)
	if err == nil {
		c.open.Add(1)
		answer.Body = &countedBody{ReadCloser: answer.Body, of: c}
	}
	return answer, err
}

type countedBody struct {
	io.ReadCloser
	of     *counting
	closed bool
}

func (b *countedBody) Close() error {
	if !b.closed {
		b.closed = true
		b.of.open.Add(-1)
	}
	return b.ReadCloser.Close()
}

// An answer that is not closed counts as a request that is under way, which others wait for: see package endpoint.
func TestAnswersAreClosed(t *testing.T) {
	quiet(t)
	server := objectserver.StartAzure(t, "tables")
	c := &counting{Transporter: transport}
	transport = c
	t.Cleanup(func() { transport = c.Transporter })
	o, err := ParseOptions(server.Options())
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open("az://tables/closed", o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, names := t.Context(), []string{"missing"}
	for i := range 300 {
		name := fmt.Sprintf("o/%d", i)
		if err := s.PutIfAbsent(ctx, name, []byte("0123456789")); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	step := func(what string, err error, want bool) {
		t.Helper()
		if (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
		if n := c.open.Load(); n != 0 {
			t.Fatalf("%s: %d answers are open", what, n)
		}
	}
	step("create", nil, true)
	step("create again", s.PutIfAbsent(ctx, "o/0", nil), false)
	_, err = s.Stat(ctx, "missing")
	step("stat of none", err, false)
	step("read", s.ReadAt(ctx, "o/0", make([]byte, 4), 3), true)
	step("read beyond the end", s.ReadAt(ctx, "o/0", make([]byte, 4), 30), false)
	step("read of none", s.ReadAt(ctx, "missing", make([]byte, 4), 0), false)
	n, err := s.ReadUpTo(ctx, "o/0", make([]byte, 20), 4)
	step("read up to", err, n == 6)
	_, _, err = s.ReadWhole(ctx, "o/0", 100)
	step("read whole", err, true)
	_, found, err := s.First(ctx, "o/", "")
	step("first", err, found)
	step("delete all", s.DeleteAll(ctx, names), true)
	_, found, err = s.First(ctx, "o/", "")
	step("first of none", err, !found)
}
