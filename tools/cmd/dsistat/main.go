package main

import (
	"github.com/dsistore/dsistore/tools/command"
	"github.com/dsistore/dsistore/tools/dsistat"
)

func main() { command.Main(dsistat.Run) }
