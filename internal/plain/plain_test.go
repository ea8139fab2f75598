package plain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestText(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "labels.csv")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, missing := os.Open(filepath.Join(dir, "lables.csv"))
	_, deep := os.Stat(filepath.Join(dir, "none", "x.csv"))
	_, below := os.Stat(filepath.Join(file, "x"))
	other := errors.New("row 3: null")
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9},
		Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	full := &fs.PathError{Op: "write", Path: "/x/y", Err: syscall.ENOSPC}
	const noSpace = "/x/y: no space left on device: free some, or use another disk"
	for _, c := range []struct {
		err  error
		want string
	}{
		{missing, `DIR/lables.csv: no such file or directory; did you mean "DIR/labels.csv"?`},
		{deep, "DIR/none/x.csv: no such file or directory: there is no directory DIR/none"},
		{below, "DIR/labels.csv/x: part of this path is a file, where a directory is needed"},
		{other, "row 3: null"},
		{fmt.Errorf("--from %s: %w", "a", other), "--from a: row 3: null"},
		{fmt.Errorf("object a/b: %w", full), "object a/b: " + noSpace},
		{fmt.Errorf("/x/y: %w", full), noSpace},
		{errors.Join(full, full), noSpace + "\n" + noSpace},
		{fmt.Errorf("commit: %w: %w", other, full), "commit: row 3: null: " + noSpace},
		{&os.LinkError{Op: "rename", Old: "/a", New: "/b", Err: syscall.EROFS},
			"/b: this disk can only be read; use another one"},
		{fmt.Errorf("store s3://b: after 3 attempts: %w", &url.Error{Op: "Get", URL: "http://h:9/b?x=1", Err: refused}),
			"store s3://b: after 3 attempts: 127.0.0.1:9: nothing listens there (connection refused); look at the " +
				"address, and whether the service runs"},
		{&url.Error{Op: "Get", URL: "http://no.where/b", Err: &net.OpError{Op: "dial", Net: "tcp",
			Err: &net.DNSError{Err: "no such host", Name: "no.where", IsNotFound: true}}},
			"there is no host no.where; look at the address and the network"},
		{&url.Error{Op: "Get", URL: "http://h/b", Err: context.DeadlineExceeded},
			"h: no answer in time; look at the address and the network"},
		{os.NewSyscallError("mmap", syscall.ENOMEM), "cannot allocate memory"},
		{fmt.Errorf("cache: %w", syscall.EACCES),
			"cache: permission denied; look at its owner and mode, and at those of the directories above it"},
	} {
		want := strings.ReplaceAll(c.want, "DIR", dir)
		if got := Text(c.err); got != want {
			t.Errorf("%v\ngot  %s\nwant %s", c.err, got, want)
		}
	}
}

// A path that is not absolute says from where it was looked for.
func TestRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := os.Stat("dump")
	here, _ := os.Getwd()
	want := "dump: no such file or directory; looked for as " + filepath.Join(here, "dump")
	if got := Text(err); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
