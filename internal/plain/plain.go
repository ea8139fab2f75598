// Package plain says in plain English what went wrong in the operating system or on the network.
//
//	open lables.csv: no such file or directory   ──> lables.csv: no such file or directory; did you mean "labels.csv"?
//	dial tcp 10.0.0.1:9000: connect: ...         ──> 10.0.0.1:9000: nothing listens there (connection refused); ...
//
// The layers wrap such errors as they come, so that callers can match them. Programs call Text where they show an error
// to a person. It changes only the part of a text that came from the system, and leaves the rest as it was made.
package plain

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/dsistore/dsistore/internal/suggest"
)

// Text returns what err says, without the names of system calls, and with what to do about it where that is known.
func Text(err error) string {
	text := err.Error()
	type part struct {
		at, end int
		err     error
	}
	var parts []part
	visit(err, func(e error) {
		said := e.Error()
		for from := 0; said != ""; {
			i := strings.Index(text[from:], said)
			if i < 0 {
				return
			}
			p := part{from + i, from + i + len(said), e}
			if !slices.ContainsFunc(parts, func(o part) bool { return p.at < o.end && o.at < p.end }) {
				parts = append(parts, p)
				return
			}
			from = p.end
		}
	})
	slices.SortFunc(parts, func(a, b part) int { return a.at - b.at })
	var out strings.Builder
	done := 0
	for _, p := range parts {
		out.WriteString(text[done:p.at])
		out.WriteString(sentence(p.err, out.String()))
		done = p.end
	}
	return out.String() + text[done:]
}

// visit calls f with each error of the system that err wraps, without those that such an error wraps itself.
func visit(err error, f func(error)) {
	switch e := err.(type) {
	case nil:
	case *fs.PathError, *os.LinkError, *os.SyscallError, *url.Error, *net.OpError, *net.DNSError, syscall.Errno:
		f(err)
	case interface{ Unwrap() error }:
		visit(e.Unwrap(), f)
	case interface{ Unwrap() []error }:
		for _, e := range e.Unwrap() {
			visit(e, f)
		}
	}
}

// sentence says what an error of the system means. before is what stands before it: a path there is not repeated.
func sentence(err error, before string) string {
	place, cause := "", err
	switch e := err.(type) {
	case *fs.PathError:
		place, cause = e.Path, e.Err
	case *os.LinkError:
		place, cause = e.New, e.Err
	case *os.SyscallError:
		cause = e.Err
	case *url.Error:
		return network(err, e.URL)
	case *net.OpError, *net.DNSError:
		return network(err, "")
	}
	text := reason(cause, place)
	if place == "" || strings.HasSuffix(before, place+": ") {
		return text
	}
	return place + ": " + text
}

// reasons are what errors of files mean, and what to do about them. The first that matches counts.
var reasons = []struct {
	err  error
	text string
}{
	{syscall.ENOTDIR, "part of this path is a file, where a directory is needed"},
	{syscall.EISDIR, "is a directory, where a file is needed"},
	{syscall.ENOSPC, "no space left on device: free some, or use another disk"},
	{syscall.EDQUOT, "no space left in this user's disk quota; free some, or use another disk"},
	{syscall.EFBIG, "file too large for this disk, or for the limit of this process (ulimit -f)"},
	{syscall.EROFS, "this disk can only be read; use another one"},
	{syscall.EMFILE, "too many open files; raise the limit of this process (ulimit -n)"},
	{syscall.ENFILE, "too many open files on this machine"},
	{syscall.ELOOP, "its symbolic links lead in a circle"},
	{syscall.ENAMETOOLONG, "this name is too long for the file system"},
	{syscall.EIO, "the disk could not read or write it; look at the system's log"},
	{syscall.EPIPE, "the program that reads this output has ended"},
	{syscall.EADDRINUSE, "another program listens there; port 0 takes a free one"},
	{syscall.EADDRNOTAVAIL, "this machine does not have that address"},
	{syscall.ECONNREFUSED, "nothing listens there (connection refused); look at the address, and whether the " +
		"service runs"},
	{syscall.ECONNRESET, "the service closed the connection"},
	{syscall.ETIMEDOUT, "no answer in time; look at the address and the network"},
	{syscall.EHOSTUNREACH, "there is no way to that machine; look at the address and the network"},
	{syscall.ENETUNREACH, "there is no way to that network; look at the address and the network"},
	{context.DeadlineExceeded, "no answer in time; look at the address and the network"},
	{os.ErrDeadlineExceeded, "no answer in time; look at the address and the network"},
	{fs.ErrPermission, "permission denied; look at its owner and mode, and at those of the directories above it"},
}

// reason says what an error of a file means. place is the file's path, or empty.
func reason(err error, place string) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "no such file or directory" + missing(place)
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.text
		}
	}
	return err.Error()
}

// maxNames is how many names of a directory are looked at for the one that was meant.
const maxNames = 1000

// missing says which name was probably meant by a path that does not exist, or where it was looked for.
func missing(path string) string {
	if path == "" {
		return ""
	}
	if near := Near(path); len(near) > 0 {
		return suggest.Question(near)
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return ": there is no directory " + dir
	}
	if abs, err := filepath.Abs(path); err == nil && abs != path {
		return "; looked for as " + abs
	}
	return ""
}

// Near returns what is beside a path that does not exist under a name like that of the path: what was probably meant.
func Near(path string) []string {
	dir, name := filepath.Split(filepath.Clean(path))
	above, err := os.Open(cmp.Or(dir, "."))
	if err != nil {
		return nil
	}
	defer above.Close()
	names, _ := above.Readdirnames(maxNames) // of a directory that cannot be listed, none is suggested
	near := suggest.Names(name, names, 3)
	for i := range near {
		near[i] = dir + near[i]
	}
	return near
}

// network says what an error of a connection means. address is the URL of the request, or empty.
func network(err error, address string) string {
	place := ""
	if u, uerr := url.Parse(address); uerr == nil {
		place = u.Host
	}
	for {
		switch e := err.(type) {
		case *url.Error:
			err = e.Err
		case *net.OpError:
			if e.Addr != nil {
				place = e.Addr.String()
			}
			err = e.Err
		case *os.SyscallError:
			err = e.Err
		case *net.DNSError:
			if e.IsNotFound {
				return "there is no host " + e.Name + "; look at the address and the network"
			}
			return e.Name + ": " + reason(err, "")
		default:
			if place != "" {
				place += ": "
			}
			return place + reason(err, "")
		}
	}
}
