package terminal

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/catalog"
)

// TestLookSuggestsWhatCanBeTyped: a command that an error suggests is complete: with the endpoint, where that is the
// store's, and without the branch.
func TestLookSuggestsWhatCanBeTyped(t *testing.T) {
	feature := catalog.NotFound("feature", "old", nil)
	dropped := &catalog.NotFoundError{Kind: "feature", Name: "old price", Dropped: true}
	damage := fmt.Errorf("scan: %w", &format.CorruptError{Object: "o", Stripe: -1, Offset: -1, Reason: "r"})
	local := Place{Store: "my store", Table: "ads@exp"}
	remote := Place{Store: "s3://b/s", Endpoint: Endpoint{EndpointURL: "http://h:9000"}, Table: "ads"}
	sources := Place{Store: "store", Endpoint: Endpoint{EndpointURL: "http://h:9000"}, Table: "ads"}
	for _, c := range []struct {
		err  error
		at   Place
		want string
	}{
		{feature, local, "; dsi features 'my store' ads lists what there is"},
		{feature, remote, "; dsi features s3://b/s ads --endpoint-url http://h:9000 lists what there is"},
		{feature, sources, "; dsi features store ads lists what there is"},
		{feature, Place{Store: "store"}, `feature "old": not found`},
		{dropped, local, "; dsi features restore 'my store' ads 'old price' takes that back"},
		{dropped, remote,
			"; dsi features restore s3://b/s ads --endpoint-url http://h:9000 'old price' takes that back"},
		{catalog.NotFound("table", "adz", nil), remote,
			"; dsi tables s3://b/s --endpoint-url http://h:9000 lists what there is"},
		{damage, local, "; dsi verify 'my store' --deep finds all that is damaged"},
		{damage, remote, "; dsi verify s3://b/s --endpoint-url http://h:9000 --deep finds all that is damaged"},
	} {
		if got := Look(c.err, c.at, nil).Error(); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s\nwant at its end %s", got, c.want)
		}
	}
}

func TestDay(t *testing.T) {
	now := time.Date(2026, 11, 27, 15, 4, 5, 0, time.UTC)
	for text, want := range map[string]string{"2026-11-01": "2026-11-01", "1d": "2026-11-27", "30d": "2026-10-29"} {
		var d Day
		if err := d.UnmarshalText([]byte(text)); err != nil || d.Since(now).Format(time.RFC3339) != want+"T00:00:00Z" {
			t.Errorf("%s begins at %v, %v; want %s", text, d.Since(now), err, want)
		}
	}
	for _, bad := range []string{"", "3", "0d", "-1d", "d", "40000d", "yesterday", "2026-13-01",
		"2026-11-01T00:00:00Z"} {
		var d Day
		if err := d.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q begins at %v, want an error", bad, d.Since(now))
		}
	}
	if !(Day{}).Since(now).IsZero() {
		t.Error("the zero Day begins at some time")
	}
}
