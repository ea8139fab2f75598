package object

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// Open returns the store that a URI names: a bare path or file:// is a local directory, made on the first write. Other
// schemes are refused by name.
func Open(uri string) (Store, error) {
	if uri == "" {
		return nil, fmt.Errorf("store uri is empty: want a path or file:///path")
	}
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return NewLocal(uri)
	}
	if scheme != "file" {
		return nil, fmt.Errorf("store %s: no support for %s:// stores; want a path or file:///path",
			redact(uri), scheme)
	}
	u, err := url.Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", redact(uri), err)
	}
	if u.Host != "" && u.Host != "localhost" {
		return nil, fmt.Errorf("store %s: host %q in a file uri; did you mean file:///%s", redact(uri), u.Host, rest)
	}
	if u.Path == "" {
		return nil, fmt.Errorf("store %s: no path", redact(uri))
	}
	return NewLocal(filepath.FromSlash(u.Path))
}

// redact returns the uri without user information and query, which may hold credentials.
func redact(uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	rest, _, _ = strings.Cut(rest, "?")
	host, path, slash := strings.Cut(rest, "/")
	if _, after, ok := strings.Cut(host, "@"); ok {
		host = after
	}
	if slash {
		host += "/"
	}
	return scheme + "://" + host + path
}

// AsLocal returns the Local under s, through any wrappers, or nil when there is none.
func AsLocal(s Store) *Local {
	for {
		switch t := s.(type) {
		case *Local:
			return t
		case interface{ Unwrap() Store }:
			s = t.Unwrap()
		default:
			return nil
		}
	}
}

// HighLatency reports whether each request of s takes about as long as a network does, so that several at once are
// better than fewer one after another: whether s or a store that it wraps has a method HighLatency that says so.
func HighLatency(s Store) bool {
	for {
		if f, ok := s.(interface{ HighLatency() bool }); ok && f.HighLatency() {
			return true
		}
		w, ok := s.(interface{ Unwrap() Store })
		if !ok {
			return false
		}
		s = w.Unwrap()
	}
}
