// Package lsm has the trees of a snapshot: sorted maps, kept as immutable runs of growing size and a memtable within
// the snapshot object.
//
//	runs[0]  runs[1] ... runs[n-1]   memtable    a key's entry in a later part replaces those before
//	largest, oldest      smallest    in the snapshot
//
// A Tree is a value, and says only which runs it has. A Store reads and writes trees, and keeps runs open.
//
// # Invariants
//
//   - Nothing in a Tree is written after it is made, and no run is ever overwritten.
//   - Put has written a run, durably, before it returns a tree that names it.
//   - The number of runs grows with the logarithm of the tree, and is at most 64.
package lsm
