package orc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/dsistore/dsistore/internal/python"
	arrowsource "github.com/dsistore/dsistore/tools/ingest/source/arrow"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
)

// script reads an ORC file stripe by stripe, as an asked in JSON on stdin says, and writes an Arrow stream to stdout.
//
// A stripe is cut by bytes, not rows: 65,536 rows of thousands of columns are more than a message may hold.
const script = `
import json
try:
    import pyarrow as pa
    from pyarrow import orc
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(77)
asked = json.load(sys.stdin)
out, most = set(asked["out"]), asked["bytes"]
f = orc.ORCFile(sys.argv[1])
fields = [x for x in f.schema if x.name not in out]
columns = [x.name for x in fields] if out else None
with pa.ipc.new_stream(sys.stdout.buffer, pa.schema(fields)) as w:
    for i in range(f.nstripes):
        b = f.read_stripe(i, columns=columns)
        at, n = 0, max(1, min(65536, most * b.num_rows // max(1, b.nbytes)))
        while at < b.num_rows:
            part = b.slice(at, n)
            while part.num_rows > 1 and part.nbytes > 2 * most:
                part = part.slice(0, part.num_rows // 2)
            w.write_batch(part)
            at += part.num_rows
sys.stdout.flush()
`

// asked is what the script is asked for.
type asked struct {
	Out   []string `json:"out"`   // columns that it leaves out
	Bytes int64    `json:"bytes"` // of a record batch, about; a row is never cut
}

// messageBytes is about the size of the record batches that the child sends.
const messageBytes = 64 << 20

const install = "ORC files are read by pyarrow: python3 -m pip install pyarrow (" + python.Variable +
	" names another interpreter)"

// Format is that of ORC files.
var Format = &input.Format{
	Name:      "orc",
	Magic:     []string{"ORC"},
	Suffixes:  []string{".orc"},
	FilesOnly: true,
	Begin: func(d *input.Set) input.Opener {
		return func(ctx context.Context, in input.File) (column.Reader, error) {
			return open(ctx, in, d)
		}
	},
	Ranges: timestampRanges,
}

// A child is the python process that reads an ORC file. No Go library does.
type child struct {
	cmd    *exec.Cmd
	out    io.ReadCloser
	stderr python.Stderr
	once   sync.Once
	err    error // of Wait
}

// open starts the child and reads the schema that it sends. It does not read what the mapping drops, nor timestamps
// that pyarrow does not hold.
func open(ctx context.Context, in input.File, d *input.Set) (_ column.Reader, err error) {
	r := &reader{}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if r.file, err = in.Open(ctx); err != nil {
		return nil, err
	}
	// Where the end of the file cannot be read here, pyarrow says what is wrong with it, or reads it.
	r.tail, _ = ReadTail(r.file, r.file.Size())
	var names []string
	if r.tail != nil {
		if names, err = r.tail.rename(d); err != nil {
			return nil, err
		}
	}
	out := r.plan(d.Mapping, names)
	spooled, err := r.file.Spool() // which the child reads, and Timestamps by small parts
	if err != nil {
		return nil, err
	}
	if r.tail != nil && len(out) == len(r.cols) && len(out) > 0 {
		return r, nil
	}
	return r, r.start(ctx, in.Path, spooled, out, &d.ReadOptions)
}

// start starts the child, which leaves columns out. It reads path, or spooled where that is not nil.
func (r *reader) start(ctx context.Context, path string, spooled *os.File, out []string,
	opts *column.ReadOptions) error {
	full := "/dev/fd/3" // the first of ExtraFiles
	var err error
	if spooled == nil {
		if full, err = filepath.Abs(path); err != nil {
			return err
		}
	}
	question, err := json.Marshal(asked{append([]string{}, out...), min(messageBytes, opts.Limits.BlockBytes/4)})
	if err != nil {
		return err
	}
	cmd, err := python.Command(script, full)
	if err != nil {
		return column.Refuse("", "%v; %s", err, install)
	}
	c := &child{cmd: cmd}
	if spooled != nil {
		c.cmd.ExtraFiles = []*os.File{spooled}
	}
	c.cmd.Stdin, c.cmd.Stderr = bytes.NewReader(question), &c.stderr
	if c.out, err = c.cmd.StdoutPipe(); err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", cmd.Path, err)
	}
	defer context.AfterFunc(ctx, c.kill)()
	if r.arrow, err = arrowsource.NewReader(c.out, c, opts); err != nil {
		return c.explain(ctx, err)
	}
	r.arrow.Finish, r.child = c.wait, c
	for _, n := range r.arrow.Columns() {
		freeUnits(n)
	}
	return r.merge()
}

func (c *child) kill() { c.cmd.Process.Kill() }

// wait waits for the child to end, and returns an error that says why it failed, if it did.
func (c *child) wait() error {
	c.once.Do(func() { c.err = c.cmd.Wait() })
	if c.err == nil {
		return nil
	}
	var exit *exec.ExitError
	if errors.As(c.err, &exit) && exit.ExitCode() == python.Missing {
		return column.Refuse("", "%s; %s", c.stderr.LastLine(), install)
	}
	if line := c.stderr.LastLine(); strings.Contains(line, "ArrowNotImplementedError") {
		return column.Refuse("", "pyarrow, which reads ORC files, does not support this one: %s", line)
	} else if line != "" {
		return fmt.Errorf("pyarrow: %s", line)
	}
	return fmt.Errorf("pyarrow: %w", c.err)
}

// explain returns the child's own error instead of err when a stream that broke off is all that err says.
func (c *child) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !errors.Is(err, arrowsource.ErrCutShort) {
		return err
	}
	if own := c.wait(); own != nil {
		return own
	}
	return err
}

// Close ends the child.
func (c *child) Close() error {
	c.kill()
	c.out.Close()
	c.once.Do(func() { c.err = c.cmd.Wait() })
	return nil
}
