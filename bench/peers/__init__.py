"""dsistore beside the formats that its users would pick otherwise: the same rows, the same tensors, one run.

    run ──> workload      dumps by `dsi generate`, in the order of a log and clustered; their rows as Arrow, and as digests
     │
     ├──> worker a side   a process of its own (sides/), pinned to as many cores as it has threads; it does what it is told, a
     │                    line of JSON a command: write, read, take, open, ...
     ├──> rounds          A B C, C B A, A B C, ...: one side at a time; medians
     └──> report          a table with goals, bench/results/peers.json, docs/benchmarks.md and its plots

A figure counts only after the side has given the truth's rows. See bench/README.md.
"""
