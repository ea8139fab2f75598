package remotetest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/endpoint"
)

// LostConnections tests that the end of a connection is not told as the end of an object, which would be damage: a
// repair takes out what is damaged. open returns a store of a service without TLS, anonymous.
func LostConnections(t *testing.T, open func(t *testing.T, url string) object.Store) {
	defer func(n int) { endpoint.Attempts = n }(endpoint.Attempts)
	endpoint.Attempts = 2
	for _, answer := range []string{
		"", "HTTP/1.1 20", "HTTP/1.1 206 Partial Content\r\n",
		"HTTP/1.1 206 Partial Content\r\nContent-Length: 10\r\nContent-Range: bytes 5-14/100\r\nETag: \"a\"\r\n\r\n",
		"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 5-14/100\r\nConnection: close\r\n\r\n",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, answer)
		}))
		s := open(t, server.URL)
		for what, f := range map[string]func() error{
			"ReadAt":    func() error { return s.ReadAt(t.Context(), "a", make([]byte, 10), 5) },
			"ReadWhole": func() error { _, _, err := object.ReadWhole(t.Context(), s, "a", 1000); return err },
			"Stat":      func() error { _, err := s.Stat(t.Context(), "a"); return err },
			"List": func() error {
				for _, err := range s.List(t.Context(), "a", "") {
					return err
				}
				return nil
			},
		} {
			err := f()
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, object.ErrNotFound) ||
				err == nil && what == "ReadAt" {
				t.Errorf("%s, answered with %q: %v", what, answer, err)
			}
		}
		server.Close()
	}
}
