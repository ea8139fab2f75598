package workload

import (
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
)

// Family says what a feature's value depends on.
type Family uint8

const (
	SessionKey Family = iota + 1
	RequestKey
	UserKey
	TimeKey
	Label
	UserHistory   // ids of a session's stream, newest or oldest first
	UserWeighted  // the same with scores
	UserList      // a list for each session and version
	ItemList      // a list for each item
	UserDense     // a number for each session and version
	ItemDense     // a number for each item
	ContextDense  // a number for each row
	UserEmbedding // a vector for each session
)

// Names of the columns that are no plain features.
const (
	SessionColumn   = "session_id"
	RequestColumn   = "request_id"
	UserColumn      = "user_id"
	TimeColumn      = "event_time" // milliseconds since 1970, as int64
	ClickColumn     = "click"
	ConvertColumn   = "conversion"
	EmbeddingColumn = "user_embedding"
)

// The mix of families, in percent of the sparse and of the dense features, and the shape of each.
const (
	historyPercent   = 30
	userListPercent  = 50 // the rest of the sparse features are item lists
	userDensePercent = 68
	itemDensePercent = 25 // the rest of the dense features are context

	embeddingDim = 32
	itemBits     = 16   // items are drawn from 65,536
	clusterBits  = 12   // half of the user lists are those of one of 4,096 clusters of users
	emptyShare   = 0.03 // of present lists
	maxScore     = 1000 // scores are thousandths
)

// A Feature is one column of the table.
type Feature struct {
	Name   string
	Family Family
	Type   vector.Type
	// Key is the feature's number in the maps of the Hive map layout.
	Key int32
	// Coverage is the probability that a session, item or row has the feature.
	Coverage float64
	// Change is the probability that a sample's version differs from that of the session's sample before; user
	// features.
	Change float64
	// Group numbers the change group; features of one group change together.
	Group int
	// Length is the mean length that lists are drawn with; for histories the length at which they are cut.
	Length int
	// OldestFirst: the newest id of a history stands last.
	OldestFirst bool

	key        uint64 // of all the feature's randomness
	changeKey  uint64 // of its group's
	coverParts uint32
	empty      uint32
	changed    uint32 // Change in parts
	vocabulary uint32 // bits
	style      uint8  // of dense values
	clustered  bool
}

// Shapes of dense values.
const (
	styleCount    = 0 // Zipf-distributed counts
	styleRatio    = 1 // four decimals
	styleNormal   = 2 // bell-shaped, full precision
	styleInteger  = 3 // int32 or int64
	stylePrice    = 4 // two decimals, float64
	styleFlag     = 5 // bool
	denseStyles   = 10
	historyGroup  = 3 // features a change group
	listGroup     = 4
	denseGroup    = 8
	maxHistoryLen = 255
)

// plan returns the columns of the table that o (with defaults) describes.
func plan(o Options) []Feature {
	root := join(mix(o.Seed), Version)
	int64s := vector.Type{Kind: vector.Dense, Elem: vector.Int64}
	flag := vector.Type{Kind: vector.Dense, Elem: vector.Int32}
	fs := []Feature{
		{Name: SessionColumn, Family: SessionKey, Type: int64s, Coverage: 1},
		{Name: RequestColumn, Family: RequestKey, Type: int64s, Coverage: 1},
		{Name: UserColumn, Family: UserKey, Type: int64s, Coverage: 1},
		{Name: TimeColumn, Family: TimeKey, Type: int64s, Coverage: 1},
		{Name: ClickColumn, Family: Label, Type: flag, Coverage: 1},
		{Name: ConvertColumn, Family: Label, Type: flag, Coverage: 1},
	}
	p := planner{root: root, hive: o.Layout == HiveMap, changed: o.Changed}
	histories := o.Sparse * historyPercent / 100
	lists := o.Sparse * userListPercent / 100
	users := o.Dense * userDensePercent / 100
	items := o.Dense * itemDensePercent / 100
	idList := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	weighted := vector.Type{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}

	fs = p.family(fs, shape{family: UserHistory, name: "user_history", n: histories - o.Weighted, typ: idList,
		cover: [2]float64{0.80, 0.96}, change: [2]float64{0.10, 0.22}, length: [2]float64{43, 123},
		vocabulary: [2]float64{13, 18}, group: historyGroup})
	fs = p.family(fs, shape{family: UserWeighted, name: "user_scored", n: o.Weighted, typ: weighted,
		cover: [2]float64{0.80, 0.96}, change: [2]float64{0.10, 0.22}, length: [2]float64{43, 123},
		vocabulary: [2]float64{13, 18}, group: historyGroup})
	fs = p.family(fs, shape{family: UserList, name: "user_list", n: lists, typ: idList,
		cover: [2]float64{0.04, 0.50}, change: [2]float64{0, 0.20}, length: [2]float64{2, 12},
		vocabulary: [2]float64{6, 15}, group: listGroup})
	fs = p.family(fs, shape{family: ItemList, name: "item_list", n: o.Sparse - histories - lists, typ: idList,
		cover: [2]float64{0.04, 0.50}, length: [2]float64{2, 12}, vocabulary: [2]float64{6, 15}})
	dense := [2]float64{0.05, 0.85}
	fs = p.family(fs, shape{family: UserDense, name: "user_dense", n: users, cover: dense, change: [2]float64{0, 0.20},
		vocabulary: [2]float64{2, 16}, group: denseGroup})
	fs = p.family(fs, shape{family: ItemDense, name: "item_dense", n: items, cover: dense,
		vocabulary: [2]float64{2, 16}})
	fs = p.family(fs, shape{family: ContextDense, name: "context_dense", n: o.Dense - users - items, cover: dense,
		vocabulary: [2]float64{2, 10}})
	fs = p.family(fs, shape{family: UserEmbedding, name: "user_embedding", n: 1, cover: [2]float64{0.8, 1},
		typ: vector.Type{Kind: vector.Embedding, Elem: vector.Float32, Dim: embeddingDim}})
	for i := range fs {
		f := &fs[i]
		if f.key == 0 {
			f.key = join(root, uint64(f.Family)<<32|uint64(i))
		}
		f.coverParts, f.empty, f.changed = parts(f.Coverage), parts(emptyShare), parts(f.Change)
	}
	return fs
}

type planner struct {
	root    uint64
	hive    bool
	changed float64 // Options.Changed
	groups  int
	dense   int32
	sparse  int32
	scored  int32
}

// A shape is a family of features whose parameters are spread over ranges.
type shape struct {
	family                            Family
	name                              string
	n                                 int
	typ                               vector.Type
	cover, change, length, vocabulary [2]float64
	group                             int // features a change group; 0: the family has none
}

func (p *planner) family(fs []Feature, s shape) []Feature {
	key := join(p.root, uint64(s.family))
	cover := strata(join(key, 1), s.n, s.cover[0], s.cover[1])
	length := strata(join(key, 2), s.n, s.length[0], s.length[1])
	vocabulary := strata(join(key, 3), s.n, s.vocabulary[0], s.vocabulary[1])
	if p.changed > 0 {
		s.change = [2]float64{p.changed, p.changed}
	}
	groups := 0
	if s.group > 0 {
		groups = (s.n + s.group - 1) / s.group
	}
	change := strata(join(key, 4), groups, s.change[0], s.change[1])
	for i := range s.n {
		f := Feature{
			Name: fmt.Sprintf("%s_%05d", s.name, i), Family: s.family, Type: s.typ,
			Coverage: cover[i], Length: int(length[i] + 0.5), vocabulary: uint32(vocabulary[i] + 0.5),
			Group: -1, key: join(key, uint64(i)<<8|5),
		}
		if groups > 0 {
			g := i % groups
			f.Group, f.Change, f.changeKey = p.groups+g, change[g], join(key, uint64(g)<<8|6)
		}
		switch s.family {
		case UserHistory, UserWeighted:
			f.OldestFirst = i%4 == 3
		case UserList:
			f.clustered = i%2 == 1
		case UserDense, ItemDense, ContextDense:
			f.Type, f.style = denseType(i)
			if p.hive {
				f.Type.Elem = vector.Float32
			}
		}
		switch {
		case s.family == UserEmbedding:
			f.Name = EmbeddingColumn
		case s.typ.Kind == vector.Weighted:
			p.scored++
			f.Key = p.scored
		case s.typ.Kind == vector.Sparse:
			p.sparse++
			f.Key = p.sparse
		default:
			p.dense++
			f.Key = p.dense
		}
		fs = append(fs, f)
	}
	p.groups += groups
	return fs
}

// denseType returns the type and style of a family's i-th dense feature: of ten, six are float32, one int64, one int32,
// one float64 and one bool.
func denseType(i int) (vector.Type, uint8) {
	t := vector.Type{Kind: vector.Dense, Elem: vector.Float32}
	switch i % denseStyles {
	case 0, 5:
		return t, styleCount
	case 1, 6:
		return t, styleRatio
	case 2, 7:
		return t, styleNormal
	case 3:
		t.Elem = vector.Int64
		return t, styleInteger
	case 8:
		t.Elem = vector.Int32
		return t, styleInteger
	case 4:
		t.Elem = vector.Float64
		return t, stylePrice
	}
	t.Elem = vector.Bool
	return t, styleFlag
}
