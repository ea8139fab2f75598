// Command serve starts a server of S3, or of another service, with buckets, for tests in other languages: it prints the
// environment by which it is reached, as a line of JSON, and ends with its standard input.
//
//	serve [-service s3|gcs|azure] [-rotate TIME] BUCKET...
//
// With -rotate the credentials of S3 change after each such time, and are given as those of a container.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dsistore/dsistore/internal/objectserver"
)

func main() {
	service := flag.String("service", "s3", "s3, gcs or azure")
	rotate := flag.Duration("rotate", 0, "of s3: how long credentials last")
	flag.Parse()
	if err := run(*service, *rotate, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(service string, rotate time.Duration, buckets []string) error {
	ctx := context.Background()
	var environment map[string]string
	switch service {
	case "s3":
		dir, err := os.MkdirTemp("", "dsistore-s3-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if rotate > 0 {
			r, stop, err := objectserver.RunRotating(ctx, dir, rotate, buckets...)
			if err != nil {
				return err
			}
			defer stop()
			environment = r.Environment()
			break
		}
		s, stop, err := objectserver.RunS3(ctx, dir, buckets...)
		if err != nil {
			return err
		}
		defer stop()
		environment = s.Environment()
	case "gcs":
		g, stop, err := objectserver.RunGCS(ctx, buckets...)
		if err != nil {
			return err
		}
		defer stop()
		environment = g.Environment()
	case "azure":
		a, stop, err := objectserver.RunAzure(ctx, buckets...)
		if err != nil {
			return err
		}
		defer stop()
		environment = a.Environment()
	default:
		return fmt.Errorf("service %q: want s3, gcs or azure", service)
	}
	if err := json.NewEncoder(os.Stdout).Encode(environment); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
