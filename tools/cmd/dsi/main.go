// Command dsi is dsistore's command line. Package cli in tools is all of it.
package main

import (
	"github.com/dsistore/dsistore/tools/cli"
	"github.com/dsistore/dsistore/tools/command"
)

func main() { command.Main(cli.Run) }
