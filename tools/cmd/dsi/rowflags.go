package main

import (
	"context"
	"slices"

	"github.com/dsistore/dsistore/tools/selection"
)

// keyFlags name rows by their keys.
type keyFlags struct {
	Keys       []string `placeholder:"FILE" sep:"none" help:"The rows with these keys: a file that ingest reads, its column named as the feature or its only one, text with a key a line (.txt, .csv, .tsv; of several columns the one named as the feature), or - for standard input. May be repeated."`
	Key        string   `placeholder:"FEATURE" help:"The feature that has the keys of --keys. Default: the table's request key."`
	KeysFormat string   `default:"auto" enum:"auto,lines,parquet,orc,jsonl,arrow" help:"auto, lines, parquet, orc, jsonl or arrow."`
	Memory     size     `default:"256MiB" placeholder:"SIZE" help:"Memory for keys; of more, the files are read several times. Default: ${default}."`
}

// source returns the keys that the flags mean; nil: none.
func (k *keyFlags) source(ctx context.Context, a *app) *selection.KeySource {
	if len(k.Keys) == 0 {
		return nil
	}
	out := &selection.KeySource{Paths: k.Keys, Format: k.KeysFormat, Feature: k.Key, Memory: int64(k.Memory)}
	if slices.Contains(k.Keys, "-") {
		out.Stdin = interruptible(ctx, a.in)
	}
	return out
}

// whichFlags say which rows are meant.
type whichFlags struct {
	Where     string `placeholder:"EXPR" help:"The rows for which this is true, as in user_id IN (17, 4711) OR event_time < '2025-01-01'."`
	Partition string `placeholder:"EXPR" help:"The rows of the partitions that this selects, as in ds < '2026-01-01'."`
	keyFlags
}

// query returns what the flags mean; lists joins sample lists.
func (w *whichFlags) query(ctx context.Context, a *app, lists string) (*selection.Query, error) {
	if w.Key != "" && len(w.Keys) == 0 {
		return nil, usagef("--key %s without --keys", w.Key)
	}
	q := &selection.Query{Partition: w.Partition, Where: w.Where, Lists: lists, Keys: w.source(ctx, a)}
	return q, q.Validate()
}

// keyFacts says what became of keys; nil: there were none.
func keyFacts(k *selection.KeyReport) [][2]string {
	if k == nil {
		return nil
	}
	facts := [][2]string{{"keys", plural(k.Keys, "key") + " of " + k.Feature + ", " + countText(k.Distinct) + " distinct, " + countText(k.Missing) + " not in the table"}}
	if k.Missing > 0 {
		shown := ""
		for _, x := range k.Examples {
			shown = joined(shown, x)
		}
		if k.Missing > uint64(len(k.Examples)) {
			shown += ", ..."
		}
		facts = append(facts, [2]string{"not there", shown})
	}
	return facts
}
