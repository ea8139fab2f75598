package metamorphic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

// An operation is something to do to the table, drawn as often as its weight says.
type operation struct {
	name   string
	weight int
	run    func(w *world) error
}

// operations are all that there are. doc.go says how to add one.
var operations = []operation{
	{"ingest", 6, ingestRows},
	{"overwrite", 2, overwriteRows},
	{"delete", 5, deleteRows},
	{"compact", 4, compactRows},
	{"compact and delete", 2, compactAndDelete},
	{"erase", 1, eraseRows},
	{"add overlay", 4, addOverlay},
	{"extend overlay", 3, extendOverlay},
	{"merge overlay", 1, mergeOverlay},
	{"drop overlay", 1, dropOverlay},
	{"create list", 4, createList},
	{"drop list", 1, dropList},
	{"create branch", 2, createBranch},
	{"drop branch", 1, dropBranch},
	{"rename feature", 1, renameFeature},
	{"drop feature", 1, dropFeature},
	{"two at once", 2, twoAtOnce},
	{"expire", 1, expire},
	{"gc", 2, collect},
	{"verify", 1, verify},
	{"reopen", 1, reopenOne},
	{"usage records", 2, usageRecords},
	{"other process", 2, otherProcess},
}

func (w *world) drawOperation() operation {
	sum := 0
	for _, o := range operations {
		sum += o.weight
	}
	at := w.rnd.IntN(sum)
	for _, o := range operations {
		if at -= o.weight; at < 0 {
			return o
		}
	}
	panic("unreachable")
}

// fixed features are in every dump, and keep their names.
var fixed = map[string]*feature{
	"row": {kind: numbers}, "key": {kind: texts}, "session": {kind: numbers}, "time": {kind: numbers},
}

// drawn features come and go: what a column of that name is when the table has none.
var drawn = map[string]feature{
	"a": {kind: numbers}, "b": {kind: numbers, fractions: true}, "c": {kind: floats}, "d": {kind: texts},
	"e": {kind: idLists}, "f": {kind: idLists},
}

// drawID draws from few ids, among them large ones.
func (w *world) drawID() int64 {
	return pick(w, w.rnd.Int64N(20), w.rnd.Int64N(20), 1<<60+w.rnd.Int64N(3), -w.rnd.Int64N(3))
}

// drawValue draws a value, not null.
func (w *world) drawValue(f *feature) any {
	switch f.kind {
	case numbers:
		return w.rnd.Int64N(60) - 20
	case floats:
		return float64(w.rnd.IntN(80)-20) / 4
	case texts:
		return pick(w, "ape", "bear", "bee", "cat", "b", "é")
	}
	list := make([]int64, w.rnd.IntN(5))
	for i := range list {
		list[i] = w.drawID()
	}
	return list
}

// A dump is rows on the way into the table.
type dump struct {
	path, mapping string
	rows          []*row
	features      map[string]*feature // by column
}

// drawDump draws rows of some of the features that a state has, and of new ones.
func (w *world) drawDump(s *state, days []string) (*dump, error) {
	d := &dump{features: maps.Clone(fixed)}
	for _, name := range s.names() {
		if fixed[name] == nil && w.chance(0.7) {
			d.features[name] = s.features[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(drawn)) {
		if s.features[name] == nil && w.chance(0.5) {
			f := drawn[name]
			d.features[name] = &f
		}
	}
	types := []string{}
	for _, name := range slices.Sorted(maps.Keys(d.features)) {
		role := map[string]string{"row": "request_key", "key": "user_key"}[name] // which key tables have
		types = append(types, fmt.Sprintf("%q: {\"type\": %q, \"role\": %q}", name, w.drawType(name, d.features[name]),
			cmp.Or(role, "feature")))
	}
	session := w.rnd.Int64N(50)
	kept := map[*feature]any{} // what rows of a session share
	for range 1 + w.rnd.IntN(40) {
		if w.chance(0.3) {
			session = w.rnd.Int64N(50)
		}
		r := &row{number: w.nextRow, day: w.draw(days), values: map[*feature]any{
			fixed["row"]: w.nextRow, fixed["key"]: fmt.Sprint("key-", w.nextRow), fixed["session"]: session,
			fixed["time"]: w.rnd.Int64N(1000),
		}}
		w.nextRow++
		if w.chance(0.05) {
			r.values[fixed["session"]] = nil
		}
		for _, name := range slices.Sorted(maps.Keys(d.features)) {
			f := d.features[name]
			switch {
			case fixed[name] != nil:
			case w.chance(0.15):
				r.values[f] = nil
			case kept[f] != nil && w.chance(0.6):
				r.values[f] = kept[f]
			default:
				r.values[f] = w.drawValue(f)
				kept[f] = r.values[f]
			}
		}
		d.rows = append(d.rows, r)
	}
	var b strings.Builder
	for _, r := range d.rows {
		fmt.Fprintf(&b, "{\"day\": %q", r.day)
		for _, name := range slices.Sorted(maps.Keys(d.features)) {
			fmt.Fprintf(&b, ", %q: %s", name, jsonText(r.values[d.features[name]]))
		}
		b.WriteString("}\n")
	}
	var err error
	if d.path, err = w.file(".jsonl", b.String()); err != nil {
		return nil, err
	}
	d.mapping, err = w.file(".json", "{\"columns\": {"+strings.Join(types, ", ")+"}}")
	return d, err
}

// drawType draws one of Hive's types that hold the values of a feature.
func (w *world) drawType(name string, f *feature) string {
	switch {
	case fixed[name] != nil && f.kind == numbers:
		return "bigint"
	case f.kind == numbers && f.fractions:
		return pick(w, "tinyint", "smallint", "int", "double")
	case f.kind == numbers:
		return pick(w, "tinyint", "int", "bigint")
	case f.kind == floats:
		return pick(w, "float", "double")
	case f.kind == texts:
		return "string"
	}
	return "array<bigint>"
}

func jsonText(v any) string {
	if list, ok := v.([]int64); ok {
		return strings.ReplaceAll(fmt.Sprint(list), " ", ", ")
	}
	return text(v)
}

// apply adds the dump's rows to a state.
func (d *dump) apply(s *state) {
	for name, f := range d.features {
		s.features[name] = f
	}
	for _, r := range d.rows {
		s.rows[r.number] = r
	}
}

// ingestOptions draws how to ingest.
func (w *world) ingestOptions(d *dump) ingest.Options {
	o := ingest.Options{
		MappingFile: d.mapping, PartitionBy: "day", SessionKey: "session", TimeKey: "time",
		Options: writer.Options{Workers: 1 + w.rnd.IntN(2), Memory: 512 << 20, SegmentRows: pick(w, 0, 10, 25),
			StripeRows: pick(w, 0, 4, 16), Profile: pick(w, "", "speed", "size"), Dedup: pick(w, writer.DedupAuto,
				writer.DedupAuto, writer.DedupOff, writer.DedupSlots), TempDir: w.dir},
	}
	if w.keyless {
		o.SessionKey, o.TimeKey = "", ""
	}
	return o
}

func ingestRows(w *world) error {
	d, err := w.drawDump(w.latest(), allDays)
	if err != nil {
		return err
	}
	report, err := ingest.Run(w.ctx, w.store(), tableName, []string{d.path}, w.ingestOptions(d))
	if err != nil {
		return err
	}
	next := w.latest().clone()
	d.apply(next)
	return w.commit(report.Snapshot, next)
}

func overwriteRows(w *world) error {
	d, err := w.drawDump(w.latest(), shuffled(w, allDays)[:1+w.rnd.IntN(2)])
	if err != nil {
		return err
	}
	opts := w.ingestOptions(d)
	opts.Overwrite = true
	report, err := ingest.Run(w.ctx, w.store(), tableName, []string{d.path}, opts)
	if err != nil {
		return err
	}
	next := w.latest().clone()
	replaced := map[string]bool{}
	for _, r := range d.rows {
		replaced[r.day] = true
	}
	maps.DeleteFunc(next.rows, func(_ int64, r *row) bool { return replaced[r.day] })
	d.apply(next)
	return w.commit(report.Snapshot, next)
}

// changeable returns the names of the features that may be renamed and dropped.
func (s *state) changeable() []string {
	return slices.DeleteFunc(s.names(), func(name string) bool {
		// What an overlay replaces keeps its name: the overlay has it by that.
		replaced := slices.ContainsFunc(s.overlays, func(o *overlayState) bool { return o.features[name] != nil })
		return fixed[name] != nil || replaced
	})
}

func renameFeature(w *world) error {
	next := w.latest().clone()
	names := next.changeable()
	if len(names) == 0 {
		return errSkip
	}
	from := w.draw(names)
	to := from + pick(w, "2", " x")
	if next.features[to] != nil || len(to) > 20 {
		return errSkip
	}
	made, err := w.table().Commit(w.ctx, commit.Change{Operation: "features",
		Ops: []commit.Operation{commit.ChangeFeatures{{Feature: from, Rename: to}}}})
	if err != nil {
		return err
	}
	w.note("%q is %q", from, to)
	next.features[to] = next.features[from]
	delete(next.features, from)
	return w.commit(made.Info().Number, next)
}

func dropFeature(w *world) error {
	next := w.latest().clone()
	names := next.changeable()
	if len(names) < 3 {
		return errSkip
	}
	name, dropped := w.draw(names), catalog.FeatureDropped
	made, err := w.table().Commit(w.ctx, commit.Change{Operation: "features",
		Ops: []commit.Operation{commit.ChangeFeatures{{Feature: name, Status: &dropped}}}})
	if err != nil {
		return err
	}
	w.note("%q", name)
	delete(next.features, name)
	return w.commit(made.Info().Number, next)
}
