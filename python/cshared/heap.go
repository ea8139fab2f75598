package main

// headroom counts as heap in use, but nothing touches it: it is address space that takes no memory. The garbage
// collector runs when the heap is twice what was in use after its last run (GOGC=100), or 4 MiB. So a process that
// opens a table and reads its first rows collected garbage several times meanwhile, which took a quarter of the
// processor's time. With headroom there may be as many bytes of garbage more before it runs.
var headroom = make([]byte, 16<<20)
