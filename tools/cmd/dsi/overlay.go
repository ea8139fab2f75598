package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/overlay"
)

type overlayCmd struct {
	Add    overlayAddCmd    `cmd:"" help:"Lay features over a table: from files joined by a key, or from an expression."`
	Extend overlayExtendCmd `cmd:"" help:"Cover more rows of the table by an overlay, as those that were ingested since: from files, or from an expression."`
	List   overlayListCmd   `cmd:"" help:"List a table's overlays, and how much they cover."`
	Show   overlayShowCmd   `cmd:"" help:"Show an overlay's features, and how much of each segment it covers."`
	Drop   overlayDropCmd   `cmd:"" help:"Drop an overlay."`
	Merge  overlayMergeCmd  `cmd:"" help:"Make an overlay part of the table: everybody reads it then."`
}

// policies are the words for missing-value policies.
var policies = map[string]storage.MissingPolicy{"fallthrough": storage.FallThrough, "null": storage.Null, "refuse": storage.Refuse}

func policyText(u storage.MissingPolicy) string {
	for name, v := range policies {
		if v == u {
			return name
		}
	}
	return u.String()
}

// overlaySource is where the features of an overlay come from.
type overlaySource struct {
	From    []string `placeholder:"FILE" help:"Files or directories to join, or - for an Arrow IPC stream on standard input. May be given several times."`
	Key     []string `placeholder:"FEATURE" help:"The feature that a row of the files and its rows of the table have in common; several, with commas, are a key together. Default: the table's request key."`
	Format  string   `default:"auto" enum:"auto,parquet,hive,orc,text,jsonl,arrow" help:"auto, parquet, hive, orc, text, jsonl or arrow."`
	Mapping string   `placeholder:"FILE" help:"Say what columns are: rename, kind, role, drop."`
	DDL     string   `name:"ddl" placeholder:"FILE" help:"The schema of a text dump, as Hive's SHOW CREATE TABLE prints it."`
	Expr    []string `sep:"none" placeholder:"EXPR" help:"A feature and the condition that it is 1 for, as in 'label_v2 = click = 1 AND dwell > 10': 0 where that is false, null where it is unknown; or a number, as in 'ctr = clicks / shows'. May be given several times."`
	Over    []string `sep:"none" placeholder:"NAME" help:"An overlay that the features of --expr are read under. May be given several times, the lowest first."`
	Memory  size     `default:"1GiB" placeholder:"SIZE" help:"Memory to stay within, as in 512MiB, 1GiB or 4g. Default: ${default}."`
	usageFlags
}

// options returns what the flags say; command is the job of those who do not say.
func (s *overlaySource) options(ctx context.Context, a *app, command string) overlay.Options {
	opts := overlay.Options{
		From: s.From, Key: s.Key, MappingFile: s.Mapping, DDLFile: s.DDL, Exprs: s.Expr, Over: s.Over, Memory: int64(s.Memory),
		Usage: s.usage(command),
	}
	if s.Format != "auto" {
		opts.Format = s.Format
	}
	if slices.Contains(s.From, "-") {
		opts.Stdin = interruptible(ctx, a.in)
	}
	return opts
}

type overlayAddCmd struct {
	tableArgs
	metricsFlag
	overlayArg
	overlaySource
	Features      []string `placeholder:"NAMES" help:"The features of the files to take. Default: all but the key."`
	Label         bool     `help:"Features that the table does not have are labels."`
	MissingRows   string   `default:"fallthrough" enum:"fallthrough,null" help:"What the features are in rows that are not covered: fallthrough, what they are below; or null. Default: ${default}."`
	MissingLayers string   `default:"fallthrough" enum:"fallthrough,null,refuse" help:"What they are in segments that are ingested later, and in those without any covered row: fallthrough, null, or refuse to read there. Default: ${default}."`
	Replace       bool     `help:"Drop an overlay of the name, in the same commit."`
}

func (c *overlayAddCmd) Run(ctx context.Context, a *app) error {
	opts := c.options(ctx, a, "overlay add")
	opts.Features, opts.MissingRows, opts.MissingLayers, opts.Replace = c.Features, policies[c.MissingRows], policies[c.MissingLayers], c.Replace
	if c.Label {
		opts.Role = storage.RoleLabel
	}
	return c.cover(ctx, a, c.tableArgs, opts, overlay.Add)
}

type overlayExtendCmd struct {
	tableArgs
	metricsFlag
	overlayArg
	overlaySource
}

func (c *overlayExtendCmd) Run(ctx context.Context, a *app) error {
	return c.cover(ctx, a, c.tableArgs, c.options(ctx, a, "overlay extend"), overlay.Extend)
}

// cover runs what makes an overlay, or covers more rows by it, and prints its report.
func (c overlayArg) cover(ctx context.Context, a *app, t tableArgs, opts overlay.Options,
	run func(context.Context, *storage.Store, string, string, overlay.Options) (overlay.Report, error)) error {
	if err := opts.Validate(); err != nil {
		return usageError{Err: err}
	}
	store, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	bar := a.progress("overlay", unitSamples)
	defer bar.finish()
	opts.Progress = func(p overlay.Progress) {
		unit := unitSamples
		if p.Phase == overlay.PhaseRead {
			unit = unitBytes
		}
		bar.phaseIn(unit, string(p.Phase), p.Done, p.Total)
	}
	r, err := run(ctx, store, t.Table, c.Overlay, opts)
	bar.finish()
	if err != nil {
		return err
	}
	if r.Unmatched > 0 {
		what := "the table has no row"
		if r.Before != nil {
			what = "the segments with rows to cover have no row"
		}
		fmt.Fprintf(a.err, "dsi: %s of %s of the files, as %s in %s\n",
			what, plural(r.Unmatched, "key"), oneLine(r.Unknown[0].Key), oneLine(r.Unknown[0].Place))
	}
	if a.json {
		return a.printJSON(r)
	}
	a.printFacts(overlayFacts(r))
	return nil
}

// shownPartial is how many segments with rows that are not covered a report names.
const shownPartial = 10

func overlayFacts(r overlay.Report) [][2]string {
	var features []string
	for _, f := range r.Features {
		text := f.Name + " " + f.Type
		if f.Replaces {
			text += " (replaces the table's)"
		}
		features = append(features, text)
	}
	where := r.Table
	if r.Branch != "" {
		where += "@" + r.Branch
	}
	facts := [][2]string{
		{"overlay", fmt.Sprintf("%s of %s, snapshot %d", r.Overlay, where, r.Snapshot)},
		{"features", strings.Join(features, ", ")},
	}
	if b := r.Before; b != nil {
		facts = append(facts, [2]string{"before",
			fmt.Sprintf("%s of %s rows, in %s of %s", countText(b.Covered), countText(b.Rows), countText(b.Layers), plural(uint64(b.Segments), "segment"))})
	}
	facts = append(facts, [][2]string{
		{"covered", fmt.Sprintf("%s of %s rows, in %s of %s", countText(r.Covered), countText(r.Rows), countText(r.Layers), plural(uint64(r.Segments), "segment"))},
	}...)
	for i, s := range r.Partial {
		if i == shownPartial {
			facts = append(facts, [2]string{"", fmt.Sprintf("and %s more: dsi overlay show", plural(uint64(len(r.Partial)-i), "segment"))})
			break
		}
		text := fmt.Sprintf("%s of %s rows of segment %s", countText(s.Covered), countText(s.Rows), s.Segment)
		if s.Partition != "" {
			text += ", " + s.Partition
		}
		facts = append(facts, [2]string{"", text})
	}
	if r.FileRows > 0 {
		facts = append(facts, [2]string{"files", fmt.Sprintf("%s, %s; %s of them are no key of the table", plural(r.FileRows, "row"), bytesText(uint64(r.BytesIn)), countText(r.Unmatched))})
	}
	perRow := ""
	if r.Rows > 0 {
		perRow = fmt.Sprintf(", %.3f a row", float64(r.BytesOut)/float64(r.Rows))
	}
	facts = append(facts, [2]string{"bytes", bytesText(r.BytesOut) + perRow})
	if r.Spills > 0 {
		facts = append(facts, [2]string{"spilled", fmt.Sprintf("%s in %s", bytesText(uint64(r.SpillBytes)), plural(uint64(r.Spills), "run"))})
	}
	return append(facts, [2]string{"time", fmt.Sprintf("%.1f s: read %.1f, match %.1f, write %.1f, commit %.1f",
		r.Seconds.Total, r.Seconds.Read, r.Seconds.Match, r.Seconds.Write, r.Seconds.Commit)})
}

// overlayJSON is an overlay as --json prints it.
type overlayJSON struct {
	Name          string             `json:"overlay"`
	Number        uint32             `json:"number"` // in the order in which they were added
	Features      []featureJSON      `json:"features"`
	MissingRows   string             `json:"missing_rows"`
	MissingLayers string             `json:"missing_layers"`
	Added         uint64             `json:"added"`  // the snapshot that defined it
	Merged        uint64             `json:"merged"` // the snapshot that made it part of the table; 0: it is not
	Branch        string             `json:"branch,omitempty"`
	Segments      int                `json:"segments"`
	Layers        int                `json:"layers"`
	Rows          uint64             `json:"rows"`
	Covered       uint64             `json:"covered"`
	Bytes         uint64             `json:"bytes"`
	Parts         []overlayPartsJSON `json:"parts,omitempty"`
}

// overlayPartsJSON is what an overlay covers of a segment.
type overlayPartsJSON struct {
	Segment   string `json:"segment"`
	Partition string `json:"partition"`
	Layer     bool   `json:"layer"`
	Rows      uint64 `json:"rows"`
	Covered   uint64 `json:"covered"`
	Bytes     uint64 `json:"bytes"`
}

func overlayInfo(ctx context.Context, snap *storage.Snapshot, o storage.Overlay, visit func(overlay.SegmentCoverage)) (overlayJSON, error) {
	c, err := overlay.Cover(ctx, snap, o, visit)
	out := overlayJSON{
		Name: o.Name, Number: o.Number, MissingRows: policyText(o.MissingRows), MissingLayers: policyText(o.MissingLayers), Added: o.Added, Merged: o.Merged,
		Branch: o.Branch, Segments: c.Segments, Layers: c.Layers, Rows: c.Rows, Covered: c.Covered, Bytes: c.Bytes,
	}
	for _, f := range o.Features {
		out.Features = append(out.Features, featureInfo(f))
	}
	slices.SortFunc(out.Features, func(a, b featureJSON) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// state says who reads an overlay.
func (o overlayJSON) state() string {
	switch {
	case o.Merged > 0:
		return fmt.Sprintf("merged in %d", o.Merged)
	case o.Branch != "":
		return "of branch " + o.Branch
	}
	return ""
}

type overlayListCmd struct {
	tableArgs
	atFlag
}

func (c *overlayListCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	snap, err := c.snapshot(ctx, store, c.Table)
	if err != nil {
		return err
	}
	all, err := snap.Overlays(ctx)
	if err != nil {
		return err
	}
	out := struct {
		Store    string        `json:"store"`
		Table    string        `json:"table"`
		Snapshot uint64        `json:"snapshot"`
		Overlays []overlayJSON `json:"overlays"` // the lowest first
	}{store.Blobs().URI(), c.Table, snap.Info().Number, []overlayJSON{}}
	var rows [][]string
	for _, o := range all {
		i, err := overlayInfo(ctx, snap, o, nil)
		if err != nil {
			return err
		}
		out.Overlays = append(out.Overlays, i)
		features := ""
		for _, f := range i.Features[:min(len(i.Features), 3)] {
			features = joined(features, f.Name)
		}
		if more := len(i.Features) - 3; more > 0 {
			features += fmt.Sprintf(" and %d more", more)
		}
		rows = append(rows, []string{i.Name, features, percentText(i.Covered, i.Rows), fmt.Sprintf("%s of %s", countText(i.Layers), countText(i.Segments)),
			bytesText(i.Bytes), i.MissingRows, i.MissingLayers, i.state()})
	}
	if a.json {
		return a.printJSON(out)
	}
	if len(rows) == 0 {
		a.printf("no overlays of %s\n", oneLine(c.Table))
		return nil
	}
	a.printTable([]string{"overlay", "features", "covered", "segments", "bytes", "missing rows", "missing layers", ""}, rows, "covered", "segments", "bytes")
	return nil
}

// percentText prints part of whole as a percentage; 100 % and 0 % are exact.
func percentText(part, whole uint64) string {
	switch {
	case whole == 0, part == whole:
		return "100 %"
	case part == 0:
		return "0 %"
	}
	return fmt.Sprintf("%.2f %%", min(max(100*float64(part)/float64(whole), 0.01), 99.99))
}

type overlayArg struct {
	Overlay string `arg:"" help:"Name of the overlay."`
}

type overlayShowCmd struct {
	tableArgs
	overlayArg
	atFlag
}

func (c *overlayShowCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	snap, err := c.snapshot(ctx, store, c.Table)
	if err != nil {
		return err
	}
	o, err := snap.Overlay(ctx, c.Overlay)
	if err != nil {
		return err
	}
	var parts []overlayPartsJSON
	info, err := overlayInfo(ctx, snap, o, func(s overlay.SegmentCoverage) {
		parts = append(parts, overlayPartsJSON{s.Segment, s.Partition.String(), s.Layer, s.Rows, s.Covered, s.Bytes})
	})
	if err != nil {
		return err
	}
	if a.json {
		info.Parts = parts
		return a.printJSON(info)
	}
	facts := [][2]string{
		{"overlay", fmt.Sprintf("%s of %s, number %d, of snapshot %d", info.Name, c.Table, info.Number, info.Added)},
		{"covered", fmt.Sprintf("%s of %s rows, in %s of %s", countText(info.Covered), countText(info.Rows), countText(info.Layers), plural(uint64(info.Segments), "segment"))},
		{"bytes", bytesText(info.Bytes)},
		{"missing rows", info.MissingRows},
		{"missing layers", info.MissingLayers},
	}
	if s := info.state(); s != "" {
		facts = append(facts, [2]string{"state", s})
	}
	a.printFacts(facts)
	a.printf("\n")
	a.printFeatures(info.Features)
	a.printf("\n")
	var rows [][]string
	for _, p := range parts {
		rows = append(rows, []string{p.Segment, p.Partition, percentText(p.Covered, p.Rows), countText(p.Covered), countText(p.Rows), bytesText(p.Bytes)})
	}
	a.printTable([]string{"segment", "partition", "covered", "rows covered", "rows", "bytes"}, rows, "covered", "rows covered", "rows", "bytes")
	return nil
}

type overlayDropCmd struct {
	tableArgs
	overlayArg
}

func (c *overlayDropCmd) Run(ctx context.Context, a *app) error {
	return c.apply(ctx, a, c.tableArgs, "dropped", func(ch *storage.Change) { ch.DropOverlays = []string{c.Overlay} })
}

type overlayMergeCmd struct {
	tableArgs
	overlayArg
}

func (c *overlayMergeCmd) Run(ctx context.Context, a *app) error {
	return c.apply(ctx, a, c.tableArgs, "merged", func(ch *storage.Change) { ch.MergeOverlays = []string{c.Overlay} })
}

// apply commits a change to an overlay that is there.
func (c overlayArg) apply(ctx context.Context, a *app, t tableArgs, what string, set func(*storage.Change)) error {
	store, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	snap, err := atFlag{}.snapshot(ctx, store, t.Table)
	if err != nil {
		return err
	}
	if _, err := snap.Overlay(ctx, c.Overlay); err != nil {
		return err
	}
	change := storage.Change{Operation: "overlay", Base: snap.Info().Number}
	set(&change)
	made, err := snap.Table().Commit(ctx, change)
	if err != nil {
		return err
	}
	return a.committed(store, t.Table, made, "overlay "+oneLine(c.Overlay)+" "+what)
}
