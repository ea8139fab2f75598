package simulate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// A traceHash tells runs apart: two that have the same did the same in the same order.
type traceHash uint64

const (
	hashStart = 14695981039346656037 // of FNV-1a
	hashPrime = 1099511628211
)

func (h *traceHash) byte(b byte) {
	if *h == 0 {
		*h = hashStart
	}
	*h = (*h ^ traceHash(b)) * hashPrime
}

func (h *traceHash) text(s string) {
	for i := range len(s) {
		h.byte(s[i])
	}
	h.byte(0)
}

// add takes in an operation that is carried out.
func (h *traceHash) add(o *operation, f fault) {
	h.byte(byte(o.machine))
	h.byte(byte(o.kind))
	h.byte(byte(f))
	h.byte(byte(o.off))
	h.text(o.name)
	h.text(o.after)
}

// logf notes something in the log, if there is one.
func (r *run) logf(format string, args ...any) {
	if r.log == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.log, "%7s %5d  ", shortTime(time.Since(r.began)), r.steps)
	fmt.Fprintf(r.log, format, args...)
	r.log.WriteByte('\n')
}

func shortTime(d time.Duration) string {
	d = d.Round(time.Second)
	if d >= time.Hour {
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}

func (r *run) logOperation(m *machine, o *operation, f fault) {
	if o.kind == opTurn {
		r.logf("%s begins: %s", m.name(), o.name)
		return
	}
	what := r.describe(o)
	if f != noFault {
		what += " [" + f.String() + "]"
	}
	r.logf("%s %s", m.name(), what)
}

// describe says what an operation asks and what the answer is.
func (r *run) describe(o *operation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-6s %s", o.kind, r.short(o.name))
	switch o.kind {
	case opWait:
		if o.of >= 0 {
			return "waited for " + o.name
		}
		return fmt.Sprintf("wait until %s", shortTime(o.until.Sub(r.began)))
	case opPut:
		fmt.Fprintf(&b, " %d B", len(o.data))
	case opRead:
		fmt.Fprintf(&b, " %d+%d", o.off, len(o.p))
	case opList:
		if o.after != "" {
			fmt.Fprintf(&b, " after %s", r.short(o.after))
		}
	}
	switch {
	case errors.Is(o.err, object.ErrNotFound):
		b.WriteString(": not found")
	case errors.Is(o.err, object.ErrExists):
		b.WriteString(": exists")
	case o.err != nil:
		b.WriteString(": error")
	case o.kind == opList:
		b.WriteString(":")
		for _, info := range o.page {
			b.WriteString(" " + r.short(strings.TrimPrefix(info.Name, o.name)))
		}
		if o.more {
			b.WriteString(" ...")
		}
	default:
		b.WriteString(": ok")
	}
	return b.String()
}

// short is a name that people can read: ids are cut to their first digits, numbers to their last.
func (r *run) short(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		switch {
		case len(p) == 32 && i > 0 && parts[i-1] == p[:2]:
			parts[i-1], parts[i] = "", p[:6]
		case len(p) >= 32 && strings.Trim(p[:32], "0123456789abcdef") == "":
			parts[i] = p[:6] + ".." + p[32:]
		case len(p) == 20 && strings.HasPrefix(p, "000"):
			parts[i] = strings.TrimLeft(p, "0")
		case len(p) == 20 && strings.Trim(p, "0123456789") == "":
			parts[i] = "..." + p[14:]
		}
	}
	return strings.TrimPrefix(strings.Join(parts, "/"), "/")
}
