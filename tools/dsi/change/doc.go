// Package change has the commands of dsi that change what a table holds: each makes one commit.
//
//	ingest ──> tools/ingest          delete, samples ──> tools/selection        features, branch ──> commit.Change
//	overlay ─> tools/overlay         generate ──> internal/workload             (which needs no store)
package change
