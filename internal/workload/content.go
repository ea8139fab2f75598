package workload

import "fmt"

// A Content is what one window of the table holds of a sparse feature when everything is stored once: each session's
// stream of a history, each distinct list of the others. Lower bounds count it.
type Content struct {
	Rows    int
	IDs     []int64   // borrowed until the next call on the Truth
	Scores  []float32 // weighted features; borrowed likewise
	Null    int       // rows
	Lists   int       // distinct ranges of IDs, summed over the window's sessions or items
	Changes int       // rows, in the clustered order, that differ from their session's row before; first rows count
}

// Content returns what a window holds of a sparse feature.
func (t *Truth) Content(feature, window int) (Content, error) {
	if feature < 0 || feature >= len(t.features) || !t.features[feature].Type.IsList() {
		return Content{}, fmt.Errorf("feature %d: want the number of a sparse feature", feature)
	}
	if window < 0 || window >= len(t.windows) {
		return Content{}, fmt.Errorf("window %d: want 0 to %d", window, len(t.windows)-1)
	}
	w := t.enter(t.windows[window].first)
	t.use(feature)
	m := &t.maker
	c := Content{Rows: w.rows}
	seen := make(map[span]struct{})
	for p := range int32(w.rows) {
		s := m.span(p)
		if s.n == spanNull {
			c.Null++
		} else {
			seen[s] = struct{}{}
		}
		if w.step(p) == 0 || s != m.span(p-1) {
			c.Changes++
		}
	}
	c.IDs, c.Scores, c.Lists = m.ids, m.scores, len(seen)
	return c, nil
}
