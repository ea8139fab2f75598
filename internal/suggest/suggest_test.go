package suggest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	among := []string{"click", "clicks", "country", "user_clicks_7d", "User_Age", "ds", "hr", "zähler"}
	tests := []struct {
		name string
		want []string
	}{
		{"clikc", []string{"click", "clicks"}},
		{"click_", []string{"click", "clicks"}},
		{"user_click_7d", []string{"user_clicks_7d"}},
		{"user_age", []string{"User_Age"}},
		{"dt", []string{"ds"}},
		{"zahler", []string{"zähler"}},
		{"nothing_like_it", nil},
		{"", nil},
		{strings.Repeat("x", 10000), nil},
	}
	for _, test := range tests {
		if got := Names(test.name, among, 3); !reflect.DeepEqual(got, test.want) {
			t.Errorf("Names(%q) = %q, want %q", test.name, got, test.want)
		}
	}
	if got := Names("f12", []string{"f10", "f11", "f13", "f14"}, 2); len(got) != 2 {
		t.Errorf("asked for 2 names, got %q", got)
	}
}

func TestHint(t *testing.T) {
	if got, want := Hint("hour", []string{"hours", "houra"}), `; did you mean "houra" or "hours"?`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Hint("hour", []string{"price"}); got != "" {
		t.Errorf("got %s for a name that nothing is near", got)
	}
}

// TestDistance holds the distance to what it promises: it counts edits, is symmetric, and gives up only over the limit.
func TestDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SliceOfN(rapid.SampledFrom([]rune("abcä")), 0, 12)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		var d distancer
		whole := d.distance(a, b, 1000)
		if back := d.distance(b, a, 1000); back != whole {
			t.Fatalf("distance %d there, %d back", whole, back)
		}
		if (whole == 0) != (string(a) == string(b)) {
			t.Fatalf("distance %d of %q and %q", whole, string(a), string(b))
		}
		limit := rapid.IntRange(0, 12).Draw(t, "limit")
		bounded := d.distance(a, b, limit)
		if (bounded <= limit) != (whole <= limit) || whole <= limit && bounded != whole {
			t.Fatalf("distance %d, with limit %d %d", whole, limit, bounded)
		}
	})
}

func ExampleHint() {
	fmt.Println("unknown feature" + Hint("user_clik", []string{"user_click", "price"}))
	// Output: unknown feature; did you mean "user_click"?
}
