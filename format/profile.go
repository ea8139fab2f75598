package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/format/encoding"
)

// A Profile weighs stored size against decoding time. The zero Profile is balanced. The profile does not change the
// format: every reader can read files of every profile.
type Profile = encoding.Profile

// profiles have names that are stored in tables.
var profiles = []struct {
	name    string
	profile Profile
}{{"speed", encoding.Speed}, {"balanced", encoding.Balanced}, {"size", encoding.Size}}

// ParseProfile returns the profile called speed, balanced or size.
func ParseProfile(name string) (Profile, error) {
	for _, p := range profiles {
		if p.name == name {
			return p.profile, nil
		}
	}
	return 0, fmt.Errorf("profile %.100q: want one of %s", name, strings.Join(ProfileNames(), ", "))
}

// ProfileNames returns the names that ParseProfile knows, fastest first.
func ProfileNames() []string {
	var out []string
	for _, p := range profiles {
		out = append(out, p.name)
	}
	return slices.Clip(out)
}
