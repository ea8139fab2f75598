package object

import (
	"maps"
	"strings"
)

// services are how the names of options begin that are for one kind of object store, and its schemes.
var services = map[string]string{
	"aws_": "s3 s3a s3n", "google_": "gs gcs", "gcs_": "gs gcs", "azure_": "az abfs abfss azure",
}

// environment begins the names of options that a program took from its environment.
const environment = "environment."

// OptionsFor returns those of options that are for what a URI names, where options are for places of several kinds: of
// a local path none. An option is for all services unless its name begins with that of one, in any case.
func OptionsFor(uri string, options map[string]string) map[string]string {
	scheme, _, ok := strings.Cut(uri, "://")
	if !ok || scheme == "file" {
		return nil
	}
	out := maps.Clone(options)
	maps.DeleteFunc(out, func(name, _ string) bool {
		name = strings.ToLower(name)
		for begin, schemes := range services {
			if strings.HasPrefix(strings.TrimPrefix(name, environment), begin) {
				return !strings.Contains(" "+schemes+" ", " "+scheme+" ")
			}
		}
		return false
	})
	return out
}
