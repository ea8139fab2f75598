// Package read has the commands of dsi that read rows.
//
//	flags ──> reader.Plan ──> Scanner ──> head: cells of a table    scan: rates    export: Parquet, Arrow, JSON
//	                     └──> Matching ──> count                    lookup: selection.Lookup
package read
