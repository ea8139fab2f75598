"""TensorFlow, Grain and JAX fed by dsistore, beside what their users read otherwise: the same rows, one run.

    run ──> baselines.workload   dumps by `dsi generate`; their rows as Arrow and as digests
     │
     ├──> baselines.worker       one process per engine (engines/), pinned to as many cores as it has threads
     ├──> measures               what is read and by which engines; checked, then in turns
     └──> page                   the tables, bench/results/frameworks.json, docs/guide/benchmarks-training.md

A figure counts only after the engine has given the truth's rows. See bench/README.md.
"""
