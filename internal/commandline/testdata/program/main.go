// Command program has a command line, and nothing else: TestLinkedMethods looks at what the linker makes of it.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/dsistore/dsistore/internal/commandline"
)

func main() {
	var g struct {
		Tables struct {
			Rows int `default:"10" help:"How many rows."`
		} `cmd:"" help:"List tables."`
	}
	p := commandline.Program{Name: "program", Version: "v1", Out: os.Stdout, Err: os.Stderr}
	fmt.Println(p.Parse(context.Background(), &g, os.Args[1:]))
}
