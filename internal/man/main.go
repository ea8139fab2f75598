// Command man writes the man pages of dsi and dsistat into a directory: make man.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/dsistore/dsistore/tools/dsi"
	"github.com/dsistore/dsistore/tools/dsistat"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man DIRECTORY")
		os.Exit(2)
	}
	if err := errors.Join(dsi.Man(os.Args[1]), dsistat.Man(os.Args[1])); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}
