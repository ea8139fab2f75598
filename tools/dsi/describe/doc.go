// Package describe has the commands of dsi that say what there is: tables, snapshots, features, files.
//
//	storage.Snapshot ──> tables, snapshots list, describe, features list
//	format ──> inspect
//
// Features and Duplicates print what other commands show of them, too: overlay show and ingest.
package describe
