package app

import (
	"context"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/tools/selection"
	"github.com/dsistore/dsistore/tools/terminal"
)

// KeyFiles are files of keys.
type KeyFiles struct {
	Keys       []string `placeholder:"FILE" sep:"none" help:"Rows with the keys in this file: a file that ingest reads, with a column named like the feature or only one column; text with one key per line (.txt, .csv, .tsv; if it has several columns, the one named like the feature); or - for standard input (an Arrow stream, or with --keys-format lines one key per line). May be repeated."`
	KeysFormat string   `default:"auto" enum:"auto,lines,parquet,orc,jsonl,arrow" help:"auto, lines, parquet, orc, jsonl or arrow."`
}

// KeyFlags name rows by their keys.
type KeyFlags struct {
	KeyFiles
	Key    string `placeholder:"FEATURE" help:"Feature that --keys refers to. Default: the table's request key."`
	Memory Size   `default:"256MiB" placeholder:"SIZE" help:"Memory for keys; if they need more, the files are read several times."`
}

// Source returns the keys that the flags mean; nil: none.
func (k *KeyFlags) Source(ctx context.Context, e *Env) *selection.KeySource {
	if len(k.Keys) == 0 {
		return nil
	}
	out := k.KeyFiles.Source(ctx, e)
	out.Feature, out.Memory = k.Key, int64(k.Memory)
	return out
}

// Source returns the keys of the files.
func (k *KeyFiles) Source(ctx context.Context, e *Env) *selection.KeySource {
	out := &selection.KeySource{Paths: k.Keys, Format: k.KeysFormat}
	if slices.Contains(k.Keys, "-") {
		out.Stdin = e.Interruptible(ctx)
	}
	return out
}

// RowFlags say which rows are meant.
type RowFlags struct {
	Where     string `placeholder:"EXPR" help:"The rows for which this is true, as in user_id IN (17, 4711) OR event_time < '2025-01-01'."`
	Partition string `placeholder:"EXPR" help:"The rows of the partitions that this selects, as in ds < '2026-01-01'."`
	KeyFlags
}

// Query returns what the flags mean; lists joins sample lists.
func (r *RowFlags) Query(ctx context.Context, e *Env, lists string) (*selection.Query, error) {
	if r.Key != "" && len(r.Keys) == 0 {
		return nil, terminal.Usagef("--key %s without --keys", r.Key)
	}
	if r.Where == "" && r.Partition == "" && lists == "" && len(r.Keys) == 0 {
		return nil, terminal.Usagef("say which rows: --where EXPR, --partition EXPR, --keys FILE, or sample lists")
	}
	q := &selection.Query{Partition: r.Partition, Where: r.Where, Lists: lists, Keys: r.Source(ctx, e)}
	return q, q.Validate()
}

// KeyFacts says what became of keys; nil: there were none.
func KeyFacts(k *selection.KeyReport) [][2]string {
	if k == nil {
		return nil
	}
	facts := [][2]string{{"keys", terminal.Plural(k.Keys, "key") + " of " + k.Feature + ", " +
		terminal.Count(k.Distinct) +
		" distinct, " + terminal.Count(k.Missing) + " not in the table"}}
	if k.Missing > 0 {
		facts = append(facts, MissingKeys(k.Examples, k.Missing))
	}
	return facts
}

// MissingKeys shows examples of n keys that no row has.
func MissingKeys(examples []string, n uint64) [2]string {
	shown := strings.Join(examples, ", ")
	if n > uint64(len(examples)) {
		shown += ", ..."
	}
	return [2]string{"not there", shown}
}

// ShownSegments is how many segments are listed for people.
const ShownSegments = 20
