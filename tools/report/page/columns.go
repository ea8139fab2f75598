package page

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/tools/report"
)

// columns are features with their keys said once, as 20,000 features would say them 20,000 times: a page of 6 MB instead of 14. A key of an object
// within a feature is "outer.inner". A value that a feature has not got is null.
type columns struct {
	Keys []string            `json:"keys"`
	Rows [][]json.RawMessage `json:"rows"`
}

// digits of a number that is not whole: more than the page shows.
const digits = 6

func newColumns(features []report.Feature) (columns, error) {
	flat := make([]map[string]json.RawMessage, len(features))
	all := map[string]bool{}
	for i := range features {
		text, err := json.Marshal(&features[i])
		if err != nil {
			return columns{}, err
		}
		flat[i] = map[string]json.RawMessage{}
		if err := flatten(flat[i], "", text); err != nil {
			return columns{}, err
		}
		for key := range flat[i] {
			all[key] = true
		}
	}
	c := columns{Keys: slices.AppendSeq([]string{}, maps.Keys(all)), Rows: make([][]json.RawMessage, len(flat))}
	slices.Sort(c.Keys)
	for i, f := range flat {
		c.Rows[i] = make([]json.RawMessage, len(c.Keys))
		for k, key := range c.Keys {
			c.Rows[i][k] = f[key]
			if f[key] == nil {
				c.Rows[i][k] = json.RawMessage("null")
			}
		}
	}
	return c, nil
}

// flatten puts the members of an object into to, those of objects in it too.
func flatten(to map[string]json.RawMessage, prefix string, object []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return err
	}
	for key, value := range members {
		if value[0] == '{' {
			if err := flatten(to, prefix+key+".", value); err != nil {
				return err
			}
			continue
		}
		to[prefix+key] = rounded(value)
	}
	return nil
}

// rounded shortens a number that is not whole.
func rounded(value json.RawMessage) json.RawMessage {
	s := string(value)
	if len(s) <= digits+2 || s[0] == '"' || s[0] == '[' || !strings.ContainsAny(s, ".eE") {
		return value
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return value
	}
	return json.RawMessage(strconv.FormatFloat(f, 'g', digits, 64))
}
