package format

import (
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/format/encoding"
)

// A Profile weighs the size of what is stored against the time to decode it; the zero Profile is balanced. Any profile
// can be read by any reader.
type Profile = encoding.Profile

// profiles by their names, which tables remember.
var profiles = []struct {
	name    string
	profile Profile
}{{"speed", encoding.Speed}, {"balanced", encoding.Balanced}, {"size", encoding.Size}}

// ParseProfile returns the profile of a name: speed, balanced or size.
func ParseProfile(name string) (Profile, error) {
	for _, p := range profiles {
		if p.name == name {
			return p.profile, nil
		}
	}
	return 0, fmt.Errorf("profile %.100q: want one of %q", name, ProfileNames())
}

// ProfileNames returns the names that ParseProfile knows, fastest first.
func ProfileNames() []string {
	var out []string
	for _, p := range profiles {
		out = append(out, p.name)
	}
	return slices.Clip(out)
}
