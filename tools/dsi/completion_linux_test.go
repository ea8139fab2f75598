package dsi

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dsistore/dsistore/internal/race"
)

// shells are those that dsi writes completions for. Each is told to print its line when Ctrl-X is pressed.
var shells = map[string]struct {
	args  []string
	setup string // after which it prints "ready", but not in the words in which it is told to
	comma string // as it writes one
}{
	"bash": {[]string{"--norc", "--noprofile", "-i"}, `PS1= PS2=; bind 'set enable-bracketed-paste off'
bind -x '"\C-x": printf "<<%s>>" "$READLINE_LINE"'
[ -f /usr/share/bash-completion/bash_completion ] && . /usr/share/bash-completion/bash_completion || . ./fallback.bash
. <(dsi completion bash); . <(dsistat completion bash); printf 'rea%s\n' dy
`, `\,`},
	"zsh": {[]string{"-f", "-i"}, `PS1= PS2= RPS1= PROMPT_EOL_MARK=; unsetopt prompt_sp; unset zle_bracketed_paste
autoload -U compinit; compinit -u -D
show() { print -rn -- "<<$BUFFER>>" }; zle -N show; bindkey '^X' show
source <(dsi completion zsh); source <(dsistat completion zsh); printf 'rea%s\n' dy
`, ","},
	"fish": {[]string{"--no-config", "-i"}, `function fish_prompt; end; bind \cx 'printf "<<%s>>" (commandline)'
dsi completion fish | source; dsistat completion fish | source; printf 'rea%s\n' dy
`, ","},
}

// fallbackBash is what bash-completion has, for where it is not installed.
const fallbackBash = `_get_comp_words_by_ref() {
	cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
}
`

// TestCompletionInShells presses Tab in each shell that is installed, on a terminal of its own.
func TestCompletionInShells(t *testing.T) {
	if race.Enabled {
		t.Skip("not under the race detector: no code runs that other tests do not")
	}
	dir := t.TempDir()
	exampleStore(t, dir)
	bin := filepath.Join(dir, "bin")
	if err := os.WriteFile("fallback.bash", []byte(fallbackBash), 0o666); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(bin, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dsi", "dsistat"} { // as testscript does
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("HOME", dir)
	t.Setenv("TERM", "vt100")
	_, err = os.Stat("/usr/share/bash-completion/bash_completion")
	hasBashCompletion := err == nil
	for name, shell := range shells {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%s is not installed: its completions are not tried", name)
			}
			s := startShell(t, path, shell.args...)
			s.write(shell.setup)
			s.until("ready\r\n")
			for _, c := range []struct{ typed, want string }{
				{"dsi desc", "dsi describe "},
				{"dsi overlay sh", "dsi overlay show "},
				{"dsi help featur", "dsi help features "},
				{"dsi head sto", "dsi head store/"},
				{"dsi head store a", "dsi head store ads "},
				{"dsi head store ads --feat", "dsi head store ads --features "},
				{"dsi head store ads --features coun", "dsi head store ads --features country"},
				{"dsi head store ads --features=coun", "dsi head store ads --features=country"},
				{"dsi head store ads --features click,coun", "dsi head store ads --features click" + shell.comma +
					"country"},
				{"dsi head store ads@ex", "dsi head store ads@ex"},
				{"dsi head store ads --features @lab", "dsi head store ads --features @labels"},
				{"dsi features drop store ads coun", "dsi features drop store ads country "},
				{"dsi ingest store ads first.csv --format par", "dsi ingest store ads first.csv --format parquet "},
				{"dsi ingest store ads firs", "dsi ingest store ads first.csv "},
				{"dsi features dr", "dsi features drop "},
				{"dsi features sto", "dsi features store/"},
				{"dsistat sto", "dsistat store/"},
				{"dsistat featur", "dsistat features "},
				{"dsistat features store a", "dsistat features store ads "},
			} {
				if name == "bash" && strings.ContainsAny(c.typed, "=@") && !hasBashCompletion {
					t.Logf("without bash-completion, bash is not asked for %s", c.typed)
				} else if got := s.complete(c.typed); got != c.want {
					t.Errorf("%q became %q, want %q", c.typed, got, c.want)
				}
			}
		})
	}
}

// A shellProcess is a shell on a terminal of its own.
type shellProcess struct {
	t        *testing.T
	terminal *os.File
	out      chan []byte
	seen     bytes.Buffer // and not returned by until
}

func startShell(t *testing.T, path string, args ...string) *shellProcess {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	t.Cleanup(func() { terminal.Close() })
	fd := int(terminal.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 1000})
	}
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, path, args...)
	in, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	c.Stdin, c.Stdout, c.Stderr = in, in, in
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	s := &shellProcess{t: t, terminal: terminal, out: make(chan []byte)}
	go func() { // until the shell has ended
		defer close(s.out)
		for {
			b := make([]byte, 4096)
			n, err := terminal.Read(b)
			if err != nil {
				return
			}
			s.out <- b[:n]
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		for range s.out {
		}
		_ = c.Wait()
	})
	return s
}

func (s *shellProcess) write(text string) {
	s.t.Helper()
	if _, err := s.terminal.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// until waits for a text, and returns what came before it.
func (s *shellProcess) until(text string) string {
	s.t.Helper()
	for {
		if before, after, ok := strings.Cut(s.seen.String(), text); ok {
			s.seen.Reset()
			s.seen.WriteString(after)
			return before
		}
		b, ok := <-s.out
		if !ok {
			s.t.Fatalf("the shell ended, or said no %q for a minute: %q", text, s.seen.String())
		}
		s.seen.Write(b)
	}
}

// complete returns what a line becomes by Tab, and empties it.
func (s *shellProcess) complete(line string) string {
	s.t.Helper()
	s.write(line + "\t\x18")
	s.until("<<")
	got := s.until(">>")
	s.write("\x15") // Ctrl-U
	return got
}
