// Package diskcache keeps parts of objects of a store far away in a directory of a local disk, for all processes of a
// machine.
//
//	Store.ReadAt --> blocks that are there: read from the directory
//	             \-> runs of others: one request of the store under it --> kept, and given to who waits
//
//	DIR/index    mapped by every process: what each block holds, the queues, counts
//	DIR/blocks-0000, ...   blocks of 1 MiB, 256 or more each, allocated when the first of them is used
//
// Only objects of segments are kept. They never change and their names are random, so that nothing has to be
// invalidated, and stores share a directory.
//
// # Reading
//
// To read a block takes no lock. An entry of the index has a number that is odd while the entry changes; a reader takes
// the number, the entry and the bytes, and then the number again. Each 64 KiB of a block have a CRC-32C in the entry.
// If the numbers differ, because the block was reused meanwhile, or if a checksum is wrong, the data is fetched again.
//
// # Changing
//
// One process at a time changes the index, under a lock of the file. A process claims a missing block before it
// fetches it, and the other processes wait. A claim ends if its process is gone, or has not renewed it for a minute. A
// block is written under the lock, if the claim is still valid. If a process dies while it changes the index, a mark
// stays in the index, and the next process rebuilds queues and look-ups from the entries.
//
// # What stays
//
// Blocks are evicted as S3-FIFO does ("FIFO queues are all you need for cache eviction", Yang et al., 2023): a new one
// goes through a small queue, and only those that were used again, or were there before, enter the large one. So an
// epoch over a table larger than the cache does not push out what every job reads. Uses within ten seconds count as
// one: a block has parts of many features, which are read one after the other.
//
// Once it is open, the cache never makes a read fail. If the directory does not work, or its lock is not free within a
// second, reads go to the store, and the cache is not used for a while.
package diskcache
