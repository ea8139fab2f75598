package main

import (
	"github.com/dsistore/dsistore/tools/dsistat"
	"github.com/dsistore/dsistore/tools/terminal"
)

func main() { terminal.Main(dsistat.Run) }
