package corpus

import (
	"os"
	"testing"

	"github.com/dsistore/dsistore/tools/dsi"
	"github.com/dsistore/dsistore/tools/terminal"
)

// asDSI says that a process of the test binary is dsi, instead of the tests. So dsi is not linked besides.
const asDSI = "DSISTORE_CORPUS_DSI"

func TestMain(m *testing.M) {
	// Tests look at what there is in stores: usage records, which are written in the background, would come and go.
	// Those that are about them have a Writer.
	os.Setenv("DSISTORE_USAGE", "off")
	if os.Getenv(asDSI) != "" {
		terminal.Main(dsi.Run)
	}
	os.Setenv(asDSI, "1") // for what the tests start
	os.Exit(m.Run())
}
