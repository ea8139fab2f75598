// Package simulate runs the real code of the store as several machines over one simulated object store, one object
// operation at a time, in an order that a seed, or an exhaustive search, chooses.
//
//	machine A        machine B        machine C    scripts of real actions: append, gc, expire, read, ...
//	storage.Store    storage.Store    ...          the code under test, unchanged, each with a clock of its own
//	   |                |                |
//	   client           client                     an object.Store whose every request waits
//	      \               |              /
//	       operations of all machines that wait
//	                      |
//	                  scheduler <── chooser        which operation is next, and what happens to it
//	                      |
//	                    blobs                      the objects
//	                      |
//	                    model                      what the tables must hold, and what must not be deleted
//
// script.go, actions.go and upkeep.go have the scripts; compacting.go and ingesting.go compactions, erasures and
// ingests of files; client.go, operation.go, run.go and blobs.go what the picture names; model.go and check.go the
// model. Choosers are the gambler (random.go), the explorer (explore.go) and the replayer (replay.go).
//
// Everything runs in a bubble of testing/synctest: when every goroutine waits, the scheduler carries out one operation,
// and the goroutine that requested it runs until all wait again. So the scheduler's decisions alone determine what
// happens, also between goroutines of one machine. Each machine takes ids from its own sequence (ids.go).
// The same world,
// seed and trace give the same run, operation by operation; TestDeterminism holds this.
//
// # The adversary
//
// Between two operations any time may pass: more than every grace period. A machine may stop for ever, and its clock be
// turned by days, both ways. An operation may fail without having been done, be done and answered with an error, be
// answered with an error and done later, arrive twice, the second time later, or be answered as done before (a creation
// gets 412 for the object that it made itself). Listings come in pages, and other things happen between the pages.
//
// # Clocks
//
// True time is the bubble's: it stands still until the scheduler lets it pass. The store dates objects by it; in random
// runs each operation takes a millisecond more. A machine's clock is true time and an offset, which the world says and
// the adversary turns. Timers run by true time.
//
// # What must hold
//
// It is looked at after every operation that changes an object, so that a failure is found at the operation that did
// it:
//
//   - each acknowledged commit is in the history, once, under the number that was returned; a refused one is not;
//   - the newest snapshot follows the one before it by one, and has the rows of the model: those of the commits in
//     their order;
//   - every snapshot can be read, whole, that has not expired, that expired within the grace period (unless somebody
//     purges), that a branch reads or that a lease holds;
//   - a reader gets the rows of its snapshot as long as one of these protects it;
//   - when an erasure says that rows are gone, no readable snapshot has them, no object of a snapshot holds them or
//     their labels, and no commit brings them back (erased.go);
//   - every action ends within a bounded number of operations;
//   - at the end, when all other machines are gone and the leases have run out, a compacted table can be compacted
//     again and unfinished erasures run again; expire and gc succeed, and leave nothing that no snapshot needs.
//
// # When it fails
//
// The failure says the seed, the world and the trace, then looks for a smaller world and a shorter trace that fail
// alike (shrink.go), prints all operations of that, and the command that runs it again (TestReplay). decision.go says
// how a trace is written, script.go how a world is.
//
// # Adding
//
// An action: write a func(m *machine) in actions.go or upkeep.go that does it with the real code inside m.do, and tell
// the model what it is to do before it is tried (machine.commit does for commits); put it into actionMakers, and with a
// weight into randomActions. Where the code that is called makes commits of a name that others use too, machine.at says
// whose they are.
//
// A mistake that the worlds must find: add it to mutations (mistakes_test.go). It may be in any package.
//
// A small world: add a line to smallWorlds. TestSmallWorlds explores it for a few seconds, make simulate to the end or
// for its share of the time.
//
// # Commands
//
//	make simulate SECONDS=600 SIMSEED=1  explores the small worlds, then draws random ones, on all cores
//	make mutations                       has each mistake found, and writes internal/simulate/RESULTS.md anew
package simulate
