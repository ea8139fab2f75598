package object

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
)

// An op is a kind of request: what a Counted tells apart.
type op int

const (
	opRead op = iota
	opStat
	opList
	opWrite // PutIfAbsent, and Create with its Commit
	opDelete
	opCount
)

var opNames = [opCount]string{"read", "stat", "list", "write", "delete"}

// A code is how a request ended.
type code int

const (
	codeOK       code = iota
	codeNotFound      // ErrNotFound
	codeExists        // ErrExists: of commits, another was first
	codeShort         // the object ends before what was asked for
	codeCanceled      // its context was cancelled
	codeTimeout       // its context's time was over
	codeError         // anything else
	codeCount
)

var codeNames = [codeCount]string{"ok", "not_found", "exists", "short", "canceled", "timeout", "error"}

func codeOf(err error) code {
	switch {
	case err == nil:
		return codeOK
	case errors.Is(err, ErrNotFound):
		return codeNotFound
	case errors.Is(err, ErrExists):
		return codeExists
	case errors.Is(err, io.ErrUnexpectedEOF):
		return codeShort
	case errors.Is(err, context.Canceled):
		return codeCanceled
	case errors.Is(err, context.DeadlineExceeded):
		return codeTimeout
	}
	return codeError
}

// endings counts requests that have ended. Safe for concurrent use.
type endings [opCount][codeCount]atomic.Int64

// end counts a request, and returns its error.
func (e *endings) end(o op, err error) error {
	e[o][codeOf(err)].Add(1)
	return err
}

// An Ending is how many requests of a kind ended in a way.
type Ending struct {
	Op   string // read, stat, list, write or delete
	Code string // ok, not_found, exists, short, canceled, timeout or error
	N    int64
}

// Endings returns how the requests ended that have ended, by kind and way, those that there were none of left out. A
// list ends once for each page of 1,000, and a write when its object is there. Of ReadRanges that fail the one range
// counts that did.
func (c *Counted) Endings() []Ending {
	var out []Ending
	for o := range c.ended {
		for k := range c.ended[o] {
			if n := c.ended[o][k].Load(); n > 0 {
				out = append(out, Ending{opNames[o], codeNames[k], n})
			}
		}
	}
	return out
}
