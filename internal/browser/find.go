package browser

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNone is returned by Find when there is no browser on this machine.
var ErrNone = errors.New("no headless Chromium")

// Variable names the browser to take; "none" is for none.
const Variable = "DSISTORE_CHROMIUM"

// Find returns the path of a Chromium: the one that the environment names, the one that install.sh put into out/browser
// of the repository around the working directory, or one in PATH.
func Find() (string, error) {
	switch named := os.Getenv(Variable); named {
	case "":
	case "none":
		return "", fmt.Errorf("%w: %s is none", ErrNone, Variable)
	default:
		return exec.LookPath(named)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	out := "out"
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			out = filepath.Join(at, "out")
			break
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	if path := filepath.Join(out, "browser", "chromium"); isFile(path) {
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome-headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	if why, err := os.ReadFile(filepath.Join(out, "browser-left-out")); err == nil {
		return "", fmt.Errorf("%w: %s", ErrNone, strings.TrimSpace(string(why)))
	}
	return "", fmt.Errorf("%w: make browser downloads one", ErrNone)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
