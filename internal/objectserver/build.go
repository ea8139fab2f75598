package objectserver

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
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

// skip skips a test whose server cannot be had, and notes it for make test, which names at its end what was left out.
func skip(t testing.TB, service string, err error) {
	t.Helper()
	os.Getenv("DSISTORE_TRY") // go test does not take the skip from its cache when this has changed
	left := filepath.Join(root(), "out", "servers-left-out")
	if merr := os.MkdirAll(left, 0o755); merr == nil {
		_ = os.WriteFile(filepath.Join(left, service), []byte(err.Error()+"\n"), 0o644)
	}
	t.Skipf("no server of %s: %v", service, err)
}

// once calls get once for each name in a process, and returns what it returned.
var once = func() func(name string, get func() (string, error)) (string, error) {
	var mu sync.Mutex
	all := map[string]func() (string, error){}
	return func(name string, get func() (string, error)) (string, error) {
		mu.Lock()
		if all[name] == nil {
			all[name] = sync.OnceValues(get)
		}
		of := all[name]
		mu.Unlock()
		return of()
	}
}()

// build returns the path of a server's binary. pkg is a package that a module in one of the folders here pins.
func build(folder, pkg string) (string, error) {
	return once(pkg, func() (string, error) { return compile(folder, pkg) })
}

// compile compiles a server, unless that was done with the module as it is. Of several processes one does, and the
// others wait. None ever writes to a file that another runs.
func compile(folder, pkg string) (string, error) {
	module := filepath.Join(root(), "internal", "objectserver", folder)
	sums, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(sums)
	path := filepath.Join(dir(), fmt.Sprintf("%s-%x", filepath.Base(pkg), sum[:6]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if folder != pinned && os.Getenv(allVariable) == "" {
		return "", fmt.Errorf("%s takes long to compile: make races does", filepath.Base(pkg))
	}
	if err := os.MkdirAll(dir(), 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(dir(), "lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil // another process has, while this one waited
	}
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	// With the flags of make test, and by go.mod with the versions of our own module: most of it is compiled already.
	c := exec.Command("go", "build", "-trimpath", "-o", fresh, pkg)
	c.Dir = module
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s cannot be compiled: %w: %s", pkg, err, strings.TrimSpace(string(out)))
	}
	return path, os.Rename(fresh, path)
}

// pinned is the folder of the module of the servers that all tests compile.
const pinned = "servers"

// allVariable of the environment lets tests install the servers that take longer than a moment.
const allVariable = "DSISTORE_SERVERS"

// installed returns the path of a program in a folder of dir, which command fills when it is first needed; it may leave
// what nobody needs later in cache. Processes that install it at once each do; the first is used.
func installed(folder, program string, quick bool, command func(fresh, cache string) *exec.Cmd) (string, error) {
	return once(folder, func() (string, error) { return install(folder, program, quick, command) })
}

func install(folder, program string, quick bool, command func(fresh, cache string) *exec.Cmd) (string, error) {
	to := filepath.Join(dir(), folder)
	path := filepath.Join(to, program)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if !quick && os.Getenv(allVariable) == "" {
		return "", fmt.Errorf("%s takes long to install: make refused does", folder)
	}
	fresh := fmt.Sprintf("%s.%d", to, os.Getpid())
	if err := os.MkdirAll(fresh, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	cache := fresh + ".cache"
	defer os.RemoveAll(cache)
	c := command(fresh, cache)
	c.Dir = fresh
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s cannot be installed: %w: %s", folder, err, strings.TrimSpace(string(out)))
	}
	if err := os.Rename(fresh, to); err != nil {
		if _, serr := os.Stat(path); serr != nil {
			return "", err
		}
	}
	return path, nil
}

// npm returns the path of the program of a package of npm.
func npm(name, version, program string) (string, error) {
	if _, err := exec.LookPath("node"); err != nil {
		return "", err
	}
	return installed(name+"-"+version, filepath.Join("node_modules", ".bin", program), true,
		func(fresh, cache string) *exec.Cmd {
			return exec.Command("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--cache", cache,
				"--prefix", fresh, name+"@"+version)
		})
}
