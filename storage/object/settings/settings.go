// Package settings reads how a service is reached: storage options by the names that other libraries have for them,
// prefixes of URIs, endpoints. Its errors show no values but those of endpoints, without what may be secret in them.
package settings

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

// EnvironmentPrefix begins the name of an option that was taken from the environment of the program that has linked a
// store's package: Go's own is that of when it was loaded. One without the prefix is used instead.
const EnvironmentPrefix = "environment."

// Parse reads options into an O, by names in any case. keys has a function for each that sets it; aliases has other
// names of keys. Unknown ones are an error that does not show values.
func Parse[O any](given map[string]string, keys map[string]func(o *O, v string) error, aliases map[string]string) (O,
	error) {
	var o O
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
		set := keys[key]
		if set == nil {
			known := slices.Sorted(maps.Keys(keys))
			return o, fmt.Errorf("storage option %q is not known%s", name, suggest.Hint(key, known))
		}
		if err := set(&o, given[name]); err != nil {
			return o, fmt.Errorf("storage option %q: %w", name, err)
		}
	}
	return o, nil
}

// Truth parses true or false.
func Truth(v string) (bool, error) {
	b, err := strconv.ParseBool(strings.ToLower(v))
	if err != nil {
		return false, fmt.Errorf("want true or false")
	}
	return b, nil
}

// maxPrefix leaves names room in keys of 1,024 bytes.
const maxPrefix = 400

// Prefix returns the prefix of objects' keys that the path of a URI says: it ends with a slash or is empty.
func Prefix(path string) (string, error) {
	prefix := strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	if prefix != "" {
		for part := range strings.SplitSeq(prefix, "/") {
			if part == "" || part == "." || part == ".." {
				return "", fmt.Errorf("prefix %q: empty, . and .. are no components", prefix)
			}
		}
		prefix += "/"
	}
	if len(prefix) > maxPrefix {
		return "", fmt.Errorf("prefix of %d bytes: want at most %d", len(prefix), maxPrefix)
	}
	return prefix, nil
}

// CheckEndpoint returns an error unless endpoint is the URL of a service, with TLS or on the loopback address, or
// allowHTTP. leave says what allows one without.
func CheckEndpoint(endpoint string, allowHTTP bool, leave string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("endpoint %q: want https://host, or http://host", redact(endpoint))
	}
	if u.User != nil || u.RawQuery != "" {
		return fmt.Errorf("endpoint %s: credentials in a URL would be logged", redact(endpoint))
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && !allowHTTP && u.Hostname() != "localhost" &&
		(ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("endpoint %s is without TLS: anyone on the way reads and changes what is sent; %s allows it",
			endpoint, leave)
	}
	return nil
}

// redact leaves scheme and host of a URL.
func redact(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return "..."
	}
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	return scheme + "://" + host[strings.LastIndex(host, "@")+1:]
}
