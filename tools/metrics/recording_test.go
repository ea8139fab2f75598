package metrics

import "os"

// Tests look at what there is in stores: usage records, which are written in the background, would come and go. Those
// that are about them have a Writer.
func init() { os.Setenv("DSISTORE_USAGE", "off") }
