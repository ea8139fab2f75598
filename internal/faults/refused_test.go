package faults

import (
	"flag"
	"regexp"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/internal/objectserver"
)

var tries = flag.Int("tries", 2, "tries to make a store in servers that are refused, each")

// TestRefused tries to make a store in servers that do not keep what commits need. Each time it fails, says why, and
// leaves nothing.
func TestRefused(t *testing.T) {
	k := &kills{dir: t.TempDir(), rows: map[string][]row{}}
	k.dump(t, "A", 0, 10, 30)
	for _, c := range []struct {
		server objectserver.Other
		says   string // a regular expression
	}{
		{objectserver.S3rver, `of 32 creations by one request each .* 32 succeeded`},
		{objectserver.S3sFS, `of 32 creations|its listings tell no versions of objects \(ETag\)`},
		{objectserver.Moto, `of (2|32) creations`},
	} {
		t.Run(c.server.Name, func(t *testing.T) {
			server := objectserver.StartOther(t, c.server, bucket)
			setenv(t, server.Environment())
			uri := "s3://" + bucket + "/store"
			for try := range *tries {
				code, out, says := run(t, k.args(firstIngest, uri)...)
				if code != 1 || strings.Contains(out, "snapshot") || !regexp.MustCompile(c.says).MatchString(says) {
					t.Fatalf("try %d: exit code %d: %s%s", try, code, out, says)
				}
				if left := objects(t, open(t, uri)); len(left) > 0 {
					t.Fatalf("try %d: %q is left", try, left)
				}
			}
		})
	}
}
