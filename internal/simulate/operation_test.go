package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// An operationKind is what a machine asks of the store, or of the scheduler.
type operationKind uint8

const (
	// a step of a script that asks nothing of the store, so that the scheduler says when it begins
	opTurn     operationKind = iota
	opWait                   // until a time, or until another machine has ended
	opRead                   // ReadAt
	opStat                   // Stat
	opPut                    // PutIfAbsent, or the Commit of a Writer
	opCreate                 // Create
	opList                   // a page of a List
	opDelete                 // Delete
	opTruncate               // Truncate
	// the objects of a table, all at once, when no other machine is at anything: its writers were stopped
	opRemove
	opDamage // bytes of an object become others
)

var operationNames = [...]string{
	opTurn: "turn", opWait: "wait", opRead: "read", opStat: "stat", opPut: "put", opCreate: "create", opList: "list",
	opDelete:   "delete",
	opTruncate: "truncate", opRemove: "remove", opDamage: "damage",
}

func (k operationKind) String() string { return operationNames[k] }

// An operation is one request of a machine. It waits until the scheduler carries it out.
type operation struct {
	kind    operationKind
	machine int
	name    string // of the object; of a list the prefix; of a turn what comes
	after   string // of a list
	data    []byte // of a put
	p       []byte // of a read: filled
	off     int64
	meant   object.Info // of a truncation: what it replaces
	until   time.Time   // of a wait for a time
	of      int         // of a wait for another machine; -1: for a time

	by *intent // what its machine was at, where that commits under a name that others use too

	done chan struct{} // closed when the answer is there

	// The answer.
	err  error
	info object.Info
	page []object.Info
	more bool

	fault   fault // that it met
	changed bool  // it has put or deleted an object
}

// compare orders the operations of a machine that wait at the same time by what they ask, not by when they came: which
// of two goroutines was quicker says nothing.
func (o *operation) compare(p *operation) int {
	return cmp.Or(cmp.Compare(o.kind, p.kind), cmp.Compare(o.name, p.name), cmp.Compare(o.after, p.after),
		cmp.Compare(o.off, p.off),
		cmp.Compare(len(o.p), len(p.p)))
}

// key is what tells the operation apart from others of its machine.
func (o *operation) key() string {
	switch o.kind {
	case opRead:
		return fmt.Sprintf("read %s %d+%d", o.name, o.off, len(o.p))
	case opList:
		return "list " + o.name + " after " + o.after
	}
	return o.kind.String() + " " + o.name
}

// A fault is what the adversary does to an operation.
type fault uint8

const (
	noFault    fault = iota
	faultFail        // it is not done, and answered with an error, as by 409, 429 and 503
	faultLost        // it is done, and answered with an error
	faultLate        // it is answered with an error, and done later
	faultTwice       // it is done and answered, and done once more later: a request that was sent again arrives twice
	// it is done, its answer is lost, and the client's second try is answered as what is done already: 412
	faultAgain
)

var faultNames = [...]string{faultFail: "fail", faultLost: "lost", faultLate: "late", faultTwice: "twice",
	faultAgain: "again"}

func (f fault) String() string { return faultNames[f] }

// late reports whether something happens later that the fault put off.
func (f fault) late() bool { return f == faultLate || f == faultTwice }

// faults are those that an operation may meet.
func (k operationKind) faults() []fault {
	switch k {
	case opPut:
		return changeFaults
	case opDelete, opTruncate:
		return changeFaults[:4] // a second try is answered as the first
	case opRead, opStat, opCreate, opList:
		return readFaults
	}
	return nil
}

var (
	readFaults   = []fault{faultFail}
	changeFaults = []fault{faultFail, faultLost, faultLate, faultTwice, faultAgain}
)

// errFault is matched by what the adversary answers. Who meets it may fail.
var errFault = errors.New("the store answered with an error")

// errStopped is matched by what a machine is answered that has stopped for ever.
var errStopped = errors.New("the machine has stopped")

// perform carries an operation out on the objects, in one piece, and sets its answer. late: it has an effect that comes
// later.
func (b *blobs) perform(o *operation, f fault, page int) (late bool) {
	o.fault = f
	if f == faultFail || f == faultLate {
		o.err = fmt.Errorf("%v %s: %w", o.kind, o.name, errFault)
		return f == faultLate
	}
	ctx := context.Background()
	switch o.kind {
	case opRead:
		o.err = b.ReadAt(ctx, o.name, o.p, o.off)
	case opStat:
		o.info, o.err = b.Stat(ctx, o.name)
	case opPut:
		o.err = b.PutIfAbsent(ctx, o.name, o.data)
		o.changed = o.err == nil
	case opList:
		o.page, o.more = b.page(o.name, o.after, page)
	case opDelete:
		o.changed = b.has(o.name)
		o.err = b.Delete(ctx, o.name)
	case opTruncate:
		o.err = b.Truncate(ctx, o.meant)
		o.changed = o.err == nil
	case opRemove:
		o.changed = b.removeAll(o.name)
	case opDamage:
		o.changed = b.damage(o.name)
	}
	switch {
	case f == faultLost:
		o.err = fmt.Errorf("%v %s: no answer came: %w", o.kind, o.name, errFault)
	case f == faultAgain && o.kind == opPut:
		o.err = exists(o.name)
	}
	return f == faultTwice
}

// sees reports whether the answer of o, which has been given, may depend on the object of a name.
func (o *operation) sees(name string) bool {
	if o.fault == faultFail || o.fault == faultLate {
		return false
	}
	switch o.kind {
	case opRead, opStat, opPut, opDelete, opTruncate:
		return o.name == name
	case opList:
		if !strings.HasPrefix(name, o.name) || name <= o.after {
			return false
		}
		return !o.more || name <= o.page[len(o.page)-1].Name
	}
	return false
}

// dependent reports whether the order of two operations of different machines that were carried out may matter: one
// changes what the other sees.
func dependent(a, b *operation) bool {
	return a.changed && b.sees(a.name) || b.changed && a.sees(b.name)
}
