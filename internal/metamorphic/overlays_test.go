package metamorphic

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/tools/overlay"
)

// addOverlay makes an overlay from a file joined by a key, or from an expression: a feature of its own, or one of the
// table anew.
//
// What an overlay says of rows without values it says of segments without a layer, too: which segments those are
// depends on how rows lie in segments, of which the model knows nothing.
func addOverlay(w *world) error {
	next := w.latest().clone()
	w.files++
	o := &overlayState{name: fmt.Sprint("overlay ", w.files), covered: map[int64]map[*feature]any{},
		null: w.chance(0.3)}
	opts := overlay.Options{Memory: 64 << 20, Workers: 1 + w.rnd.IntN(2), TempDir: w.dir}
	if o.null {
		opts.MissingRows, opts.MissingLayers = catalog.Null, catalog.Null
	}
	if w.chance(0.5) {
		name, n := fmt.Sprint("label ", w.files), w.drawExpression(next, o)
		f := &feature{kind: map[bool]kind{false: numbers, true: floats}[n.float]}
		o.features = map[string]*feature{name: f}
		opts.Exprs = []string{quote(name) + " = " + n.text}
		for k, r := range next.rows {
			o.covered[k] = map[*feature]any{f: n.of(r)}
		}
	} else if err := w.drawOverlayFile(next, o, &opts); err != nil {
		return err
	}
	w.note("%s: %v %v, %d rows, null %v", o.name, slices.Sorted(maps.Keys(o.features)), opts.Exprs, len(o.covered),
		o.null)
	report, err := overlay.Add(w.ctx, w.store(), tableName, o.name, opts)
	if err != nil {
		return err
	}
	next.overlays = append(next.overlays, o)
	return w.commit(report.Snapshot, next)
}

// drawExpression draws what a feature of an overlay is computed by, a condition or a number, and says which type that
// gives; one that has a type keeps it.
func (w *world) drawExpression(s *state, o *overlayState) number {
	if o.hive == "" && w.chance(0.5) || o.hive == "bigint" || o.hive == "double" {
		n := w.drawNumber(s, 1+w.rnd.IntN(2))
		if n.float || o.hive == "double" {
			// Of features that may be integers: what is a float in the model is one in the table.
			of := n.of
			n.text, n.float = "("+n.text+") * 1.0", true
			n.of = func(r *row) any {
				if v := of(r); v != nil {
					return toFloat(v)
				}
				return nil
			}
		}
		if hive := map[bool]string{false: "bigint", true: "double"}[n.float]; o.hive == "" || o.hive == hive {
			o.hive = hive
			return n
		}
	}
	p := w.drawPredicate(s, 1)
	if o.hive == "" {
		o.hive = "tinyint"
	}
	isFloat := o.hive == "float" || o.hive == "double"
	return number{p.text, isFloat, func(r *row) any {
		switch t := p.of(r); {
		case t == unknown:
			return nil
		case isFloat:
			return map[truth]float64{yes: 1}[t]
		default:
			return map[truth]int64{yes: 1}[t]
		}
	}}
}

// extendOverlay covers rows that an overlay does not cover, from a file or an expression: what it covers stays.
func extendOverlay(w *world) error {
	next := w.latest().clone()
	if len(next.overlays) == 0 {
		return errSkip
	}
	w.files++
	at := w.rnd.IntN(len(next.overlays))
	was := next.overlays[at]
	o := &overlayState{name: was.name, features: was.features, hive: was.hive, covered: map[int64]map[*feature]any{},
		null: was.null}
	opts := overlay.Options{Memory: pick[int64](w, 64<<20, 1), Workers: 1 + w.rnd.IntN(2), TempDir: w.dir}
	name := slices.Sorted(maps.Keys(o.features))[0]
	f := o.features[name]
	if (f.kind == numbers || f.kind == floats) && w.chance(0.5) {
		n := w.drawExpression(next, o)
		opts.Exprs = []string{quote(name) + " = " + n.text}
		for k, r := range next.rows {
			o.covered[k] = map[*feature]any{f: n.of(r)}
		}
	} else if err := w.drawOverlayFile(next, o, &opts); err != nil {
		return err
	}
	given := len(o.covered)
	maps.Copy(o.covered, was.covered)
	w.note("%s: %v %v, %d rows given", o.name, name, opts.Exprs, given)
	report, err := overlay.Extend(w.ctx, w.store(), tableName, o.name, opts)
	if err != nil {
		return err
	}
	before, covered := 0, 0
	for n := range next.rows {
		if was.covered[n] != nil {
			before++
		}
		if o.covered[n] != nil {
			covered++
		}
	}
	if int(report.Rows) != len(next.rows) || int(report.Before.Covered) != before || int(report.Covered) != covered {
		return fmt.Errorf("%d of %d rows covered, before %+v: want %d of %d, before %d", report.Covered, report.Rows,
			report.Before, covered, len(next.rows), before)
	}
	if report.Snapshot == w.newest {
		return nil // nothing was to be covered
	}
	next.overlays[at] = o
	return w.commit(report.Snapshot, next)
}

// drawOverlayFile draws the values of some rows, and of some that are not there, by their number or key.
func (w *world) drawOverlayFile(s *state, o *overlayState, opts *overlay.Options) error {
	name, f := fmt.Sprint("label ", w.files), &feature{kind: pick(w, numbers, floats, texts, idLists)}
	if names := s.changeable(); len(names) > 0 && w.chance(0.5) {
		name = w.draw(names)
		f = s.features[name]
	}
	if o.features == nil {
		o.features, o.hive = map[string]*feature{name: f}, w.drawType(name, f)
	}
	for name, f = range o.features {
	}
	key := pick(w, "row", "key")
	opts.Key = []string{key}
	var b strings.Builder
	share := w.rnd.Float64()
	for n := int64(0); n < w.nextRow+2; n++ {
		if !w.chance(share) {
			continue
		}
		var v any
		if w.chance(0.9) {
			v = w.drawValue(f)
		}
		if r := s.rows[n]; r != nil {
			o.covered[n] = map[*feature]any{f: v}
		}
		k := fmt.Sprint(n)
		if key == "key" {
			k = fmt.Sprintf("%q", "key-"+k)
		}
		fmt.Fprintf(&b, "{%q: %s, %q: %s}\n", key, k, name, jsonText(v))
	}
	if len(o.covered) == 0 {
		return errSkip
	}
	path, err := w.file(".jsonl", b.String())
	if err != nil {
		return err
	}
	opts.From = []string{path}
	opts.MappingFile, err = w.file(".json", fmt.Sprintf("{\"columns\": {%q: {\"type\": %q}, %q: {\"type\": %q}}}",
		name, o.hive, key, map[string]string{"row": "bigint", "key": "string"}[key]))
	return err
}

// mergeOverlay makes an overlay part of the table: its values are those of the rows from then on. One that says null of
// others cannot be.
func mergeOverlay(w *world) error {
	next := w.latest().clone()
	if len(next.overlays) == 0 {
		return errSkip
	}
	o := next.overlays[w.rnd.IntN(len(next.overlays))]
	if o.null {
		return errSkip
	}
	w.note("%s", o.name)
	made, err := w.table().Commit(w.ctx, commit.Change{Operation: "overlay", Base: w.newest,
		Ops: []commit.Operation{commit.MergeOverlays{o.name}}})
	if err != nil {
		return err
	}
	maps.Copy(next.features, o.features)
	for n, values := range o.covered {
		if r := next.rows[n]; r != nil {
			next.rows[n] = r.with(values)
		}
	}
	next.overlays = slices.DeleteFunc(next.overlays, func(x *overlayState) bool { return x == o })
	return w.commit(made.Info().Number, next)
}

func dropOverlay(w *world) error {
	next := w.latest().clone()
	if len(next.overlays) == 0 {
		return errSkip
	}
	o := next.overlays[w.rnd.IntN(len(next.overlays))]
	w.note("%s", o.name)
	made, err := w.table().Commit(w.ctx, commit.Change{Operation: "overlay", Base: w.newest,
		Ops: []commit.Operation{commit.DropOverlays{o.name}}})
	if err != nil {
		return err
	}
	next.overlays = slices.DeleteFunc(next.overlays, func(x *overlayState) bool { return x == o })
	return w.commit(made.Info().Number, next)
}
