// Command dsi is dsistore's command line. Package tools/dsi holds all of it.
package main

import (
	"github.com/dsistore/dsistore/tools/dsi"
	"github.com/dsistore/dsistore/tools/terminal"
)

func main() { terminal.Main(dsi.Run) }
