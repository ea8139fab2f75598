"""dsistore beside the formats that its users would choose otherwise: the same rows, the same tensors, one run.

    run ──> workload   dumps by `dsi generate`, clustered and in the order of a log; their rows as Arrow and as digests
     │
     ├──> worker       one process per engine (engines/), pinned to as many cores as it has threads. It executes
     │                 commands, one line of JSON each: write, read, take, open, ...
     ├──> rounds       A B C, C B A, A B C, ...: one engine at a time; medians
     └──> report       a table with goals, bench/results/baselines.json, docs/guide/benchmarks.md and its plots

A figure counts only after the engine has given the truth's rows. See bench/README.md.
"""
