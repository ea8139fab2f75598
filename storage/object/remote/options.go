package remote

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/internal/suggest"
)

// EnvironmentPrefix begins the name of an option that was taken from the environment of the program that has linked
// this package: Go's own is that of when it was loaded. One without the prefix is used instead.
const EnvironmentPrefix = "environment."

// Keys are the options of a service, by the names that other libraries have for them: each sets fields of an O.
type Keys[O any] map[string]func(o *O, value string) error

// Truth is an option that is true or false.
func Truth[O any](field func(*O) *bool) func(*O, string) error {
	return func(o *O, v string) (err error) {
		*field(o), err = ParseTruth(v)
		return err
	}
}

// Parse reads options by their keys, in any case of letters; aliases lead from other names to keys. Unknown names are
// an error that does not show values, and so is a value that is wrong.
func (k Keys[O]) Parse(given, aliases map[string]string) (o O, _ error) {
	known := slices.Sorted(maps.Keys(k))
	names := slices.SortedFunc(maps.Keys(given), func(a, b string) int {
		x, y := strings.HasPrefix(a, EnvironmentPrefix), strings.HasPrefix(b, EnvironmentPrefix)
		switch {
		case x == y:
			return strings.Compare(a, b)
		case x:
			return -1
		}
		return 1
	})
	for _, name := range names {
		key := strings.ToLower(strings.TrimPrefix(name, EnvironmentPrefix))
		if to, ok := aliases[key]; ok {
			key = to
		}
		set, ok := k[key]
		if !ok {
			return o, fmt.Errorf("storage option %q is not known%s", name, suggest.Hint(key, known))
		}
		if err := set(&o, given[name]); err != nil {
			return o, fmt.Errorf("storage option %q: %w", name, err)
		}
	}
	return o, nil
}

// ParseTruth reads true or false, in any case. Its error does not show the value.
func ParseTruth(v string) (bool, error) {
	b, err := strconv.ParseBool(strings.ToLower(v))
	if err != nil {
		return false, fmt.Errorf("want true or false")
	}
	return b, nil
}

// ParsePrefix returns the prefix of a store's objects in its bucket, by the path of its URI: it ends with a slash, or
// is empty.
func ParsePrefix(path string) (string, error) {
	prefix := strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	if prefix == "" {
		return "", nil
	}
	for part := range strings.SplitSeq(prefix, "/") {
		if part == "" || part == "." || part == ".." {
			return "", fmt.Errorf("prefix %q: empty, . and .. are no components", prefix)
		}
	}
	if prefix += "/"; len(prefix) > maxPrefix {
		return "", fmt.Errorf("prefix of %d bytes: want at most %d", len(prefix), maxPrefix)
	}
	return prefix, nil
}

// maxPrefix leaves names room in keys of 1,024 bytes.
const maxPrefix = 400

// ParseEndpoint reads the URL of a service. Without TLS it must be on this machine, unless allowHTTP; allow says what
// allows it.
func ParseEndpoint(endpoint string, allowHTTP bool, allow string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("endpoint %q: want https://host, or http://host", redactURL(endpoint))
	}
	if u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("endpoint %s: credentials in a URL would be logged", redactURL(endpoint))
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && !allowHTTP && u.Hostname() != "localhost" &&
		(ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("endpoint %s is without TLS: anyone on the way reads and changes what is sent; %s "+
			"allows it", redactURL(endpoint), allow)
	}
	return u, nil
}

// redactURL leaves scheme and host of a URL.
func redactURL(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok { // host:port, or anything, a secret too
		if host, port, err := net.SplitHostPort(s); err == nil && strings.Trim(port, "0123456789") == "" &&
			!strings.Contains(host, "@") {
			return s
		}
		return "..."
	}
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		rest = rest[:end]
	}
	return scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
}
