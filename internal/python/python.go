// Package python runs scripts in a child process, for what only Python's libraries do. They are looked for in the
// interpreter that DSISTORE_PYTHON names, else python3.
//
//	Command(script, args) ──> exec.Cmd ──> stdout: the script's own      Stderr: its end, for the error
//	                                 └──> exit code Missing: a library is not there
package python

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// Variable names the interpreter.
const Variable = "DSISTORE_PYTHON"

// Missing is the exit code by which a script says that it cannot import a library.
const Missing = 77

// prelude comes before every script. The working directory is no place to import from.
const prelude = "import sys\nsys.path = [p for p in sys.path if p]\n"

// Command returns the command that runs a script. The error says that there is no interpreter.
func Command(script string, args ...string) (*exec.Cmd, error) {
	name := cmp.Or(os.Getenv(Variable), "python3")
	exe, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("there is no program %s", name)
	}
	return exec.Command(exe, append([]string{"-X", "utf8", "-c", prelude + script}, args...)...), nil
}

// Stderr keeps the end of what is written to it.
type Stderr struct {
	mu  sync.Mutex // guards buf
	buf []byte
}

const keptBytes = 16 << 10

func (s *Stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(s.buf, p...)
	if extra := len(s.buf) - keptBytes; extra > 0 {
		s.buf = append(s.buf[:0], s.buf[extra:]...)
	}
	return len(p), nil
}

// String returns what is kept, without blanks around it.
func (s *Stderr) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(string(s.buf))
}

// LastLine returns the last line, which has the error of a script that ended by an exception.
func (s *Stderr) LastLine() string {
	lines := strings.Split(s.String(), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
