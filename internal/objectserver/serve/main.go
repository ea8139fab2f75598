// Command serve starts a server of S3 with buckets, for tests in other languages: it prints the environment by which it
// is reached, as a line of JSON, and ends with its standard input.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/dsistore/dsistore/internal/objectserver"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(buckets []string) error {
	dir, err := os.MkdirTemp("", "dsistore-s3-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, stop, err := objectserver.RunS3(context.Background(), dir, buckets...)
	if err != nil {
		return err
	}
	defer stop()
	if err := json.NewEncoder(os.Stdout).Encode(s.Environment()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
