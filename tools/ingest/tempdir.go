package ingest

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// spillPrefix begins the names of spill files. Each is unlinked as soon as it is open: the system frees it when the
// process ends, in whatever way. A name is seen only if the process died between the two steps.
const spillPrefix = "ingest-spill-"

// createSpill makes a spill file without a name in dir. Closing it frees it.
func createSpill(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, spillPrefix+"*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// removeStaleSpills removes names that killed ingests left in dir. Taking the name of one that is just being made does no
// harm: its owner was about to.
func removeStaleSpills(dir string) error {
	names, err := filepath.Glob(filepath.Join(globEscape(dir), spillPrefix+"*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// spillDir returns the directory for spill files, made if need be: the one asked for; else tmp in a store that is a
// local directory; else the system's.
func spillDir(asked, storeURI string) (string, error) {
	dir := asked
	if dir == "" {
		if root, ok := localRoot(storeURI); ok {
			dir = filepath.Join(root, "tmp")
		} else {
			dir = os.TempDir()
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	return dir, removeStaleSpills(dir)
}

// localRoot returns the directory that a store's URI names, if it names one.
func localRoot(uri string) (string, bool) {
	if !strings.Contains(uri, "://") {
		return uri, uri != ""
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	return filepath.FromSlash(u.Path), true
}
