// Package maintain has the commands of dsi that keep a store in order.
//
//	compact, erase ──> compaction                  gc, verify, repair, snapshots expire, leases ──> storage
//	usage ──> usage                                what has ended rolls usage records up, too: compact and gc
package maintain
