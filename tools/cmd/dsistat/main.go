package main

import "github.com/dsistore/dsistore/tools/command"

func main() { command.Main(run) }
