package object

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// An Opener returns the store of a URI. Options say how a service is reached, where the environment does not; their
// values may be secrets, which errors do not show.
type Opener func(uri string, options map[string]string) (Store, error)

var openers = map[string]Opener{} // by scheme; written by init functions alone

// Register makes Open call open for URIs of a scheme. It is called by the init function of a package that has a kind of
// store, so that a program has the kinds whose packages it imports.
func Register(scheme string, open Opener) { openers[scheme] = open }

// Open is OpenWith without options.
func Open(uri string) (Store, error) { return OpenWith(uri, nil) }

// OpenWith returns the store that a URI names: a bare path or file:// is a local directory, made on the first write. It
// makes no request of a service. Schemes that no package has registered are refused by name.
func OpenWith(uri string, options map[string]string) (Store, error) {
	if uri == "" {
		return nil, fmt.Errorf("store uri is empty: want a path or file:///path")
	}
	scheme, rest, ok := strings.Cut(uri, "://")
	if open := openers[scheme]; ok && open != nil {
		return open(uri, options)
	}
	if meant := withSlashes(uri); !ok && meant != "" {
		return nil, fmt.Errorf("store %s: the URI of a store has two slashes, //, after the colon; "+
			"for a directory of this name write ./ before it", meant)
	}
	if len(options) > 0 && (!ok || scheme == "file") {
		return nil, fmt.Errorf("store %s: storage options are for object stores, and this is a local directory",
			redact(uri))
	}
	if !ok {
		return NewLocal(uri)
	}
	if scheme != "file" {
		return nil, fmt.Errorf("store %s: no support for %s:// stores; want %s", redact(uri), scheme,
			alternatives(scheme, []string{"a path", "file://"}, openers))
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

// withSlashes returns the URI that a path which begins like one was meant to be; "": it is a path.
func withSlashes(path string) string {
	scheme, rest, colon := strings.Cut(path, ":")
	scheme = strings.ToLower(scheme)
	if !colon || packages[scheme] == "" {
		return ""
	}
	return redact(scheme + "://" + strings.TrimLeft(rest, "/"))
}

// packages are those that register schemes, so that the error of a program without one of them names it.
var packages = map[string]string{"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gcs", "gcs": "gcs", "az": "azure",
	"abfs": "azure", "abfss": "azure"}

// alternatives says what a URI of a scheme that openers lack may be instead: names, or a scheme of openers. If a
// package of ours has the scheme, it says which to import.
func alternatives[F any](scheme string, names []string, openers map[string]F) string {
	for _, s := range slices.Sorted(maps.Keys(openers)) {
		names = append(names, s+"://")
	}
	last := len(names) - 1
	text := names[last]
	if last > 0 {
		text = strings.Join(names[:last], ", ") + " or " + text
	}
	if pkg := packages[scheme]; pkg != "" {
		text += fmt.Sprintf(", or import _ %q", "github.com/dsistore/dsistore/storage/object/"+pkg)
	}
	return text
}

// redact returns the uri without user information and query, which may hold credentials. A secret may have slashes in
// it, and the uri one or three where two are meant.
func redact(uri string) string {
	_, rest, ok := strings.Cut(uri, ":/")
	if !ok {
		return uri
	}
	rest = strings.TrimLeft(rest, "/")
	begin := uri[:len(uri)-len(rest)]
	rest, _, _ = strings.Cut(rest, "?")
	host, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndex(host, "@")
	if at < 0 || strings.HasSuffix(begin, ":///") {
		if at = strings.LastIndex(rest, "@"); at >= 0 && !strings.Contains(rest[:at], ":") {
			at = -1 // of a path
		}
	}
	return begin + rest[at+1:]
}
