package objectserver

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// root returns the folder of the repository, which the working directory is in.
func root() string {
	dir, err := os.Getwd()
	for err == nil {
		mod, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
		if strings.HasPrefix(string(mod), "module github.com/dsistore/dsistore\n") || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// dir is where the servers' binaries lie.
func dir() string { return filepath.Join(root(), "out", "servers") }

// build returns the path of a server's binary. pkg is a package that the module in servers pins.
var build = func() func(pkg string) (string, error) {
	var mu sync.Mutex
	built := map[string]func() (string, error){}
	return func(pkg string) (string, error) {
		mu.Lock()
		if built[pkg] == nil {
			built[pkg] = sync.OnceValues(func() (string, error) { return compile(pkg) })
		}
		once := built[pkg]
		mu.Unlock()
		return once()
	}
}()

// compile compiles a server, unless that was done with the module as it is. Processes that compile it at once each do,
// and none ever writes to a file that another runs.
func compile(pkg string) (string, error) {
	module := filepath.Join(root(), "internal", "objectserver", "servers")
	sums, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(sums)
	path := filepath.Join(dir(), fmt.Sprintf("%s-%x", filepath.Base(pkg), sum[:6]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir(), 0o755); err != nil {
		return "", err
	}
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	c := exec.Command("go", "build", "-trimpath", "-o", fresh, pkg)
	c.Dir = module
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s cannot be compiled: %w: %s", pkg, err, strings.TrimSpace(string(out)))
	}
	return path, os.Rename(fresh, path)
}
