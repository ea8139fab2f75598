package files

import (
	"path/filepath"
	"strings"
)

// IsURI reports whether a path is that of an object or of a prefix in a bucket.
func IsURI(path string) bool {
	scheme, _, ok := strings.Cut(path, "://")
	if !ok || scheme == "" {
		return false
	}
	for i := range len(scheme) {
		c := scheme[i]
		if (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// split returns the parts of scheme://bucket/key.
func split(uri string) (scheme, bucket, key string) {
	scheme, rest, _ := strings.Cut(uri, "://")
	bucket, key, _ = strings.Cut(rest, "/")
	return scheme, bucket, key
}

// Join returns the path of a name in a directory.
func Join(dir, name string) string {
	if IsURI(dir) {
		return strings.TrimSuffix(dir, "/") + "/" + name
	}
	return filepath.Join(dir, name)
}

// Base returns the last name of a path: of a bucket none.
func Base(path string) string {
	if IsURI(path) {
		_, _, key := split(path)
		return key[strings.LastIndexByte(key, '/')+1:]
	}
	return filepath.Base(path)
}

// Dir returns the directory that a path is in: of a bucket itself.
func Dir(path string) string {
	if !IsURI(path) {
		return filepath.Dir(path)
	}
	scheme, bucket, key := split(path)
	root := scheme + "://" + bucket
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		return root + "/" + key[:i]
	}
	return root
}
