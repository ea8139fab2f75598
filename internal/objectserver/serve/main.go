// Command serve starts a server of S3, or of another service, with buckets, for tests in other languages: it prints the
// environment by which it is reached, as a line of JSON, and ends with its standard input.
//
//	serve [-service s3|gcs|azure] [-rotate TIME] [-proxy] BUCKET...
//
// With -rotate the credentials of S3 change after each such time, and are given as those of a container.
//
// With -proxy, of S3 alone, requests go by way of a proxy. Then a line of standard input is how much longer each takes
// from now on, 10ms for instance, and is answered by a line: the requests since the line before, and the bytes of their
// answers.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/dsistore/dsistore/internal/objectserver"
)

func main() {
	service := flag.String("service", "s3", "s3, gcs or azure")
	rotate := flag.Duration("rotate", 0, "of s3: how long credentials last")
	proxy := flag.Bool("proxy", false, "of s3: go by way of a proxy, which counts and makes requests slow")
	flag.Parse()
	if err := run(*service, *rotate, *proxy, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(service string, rotate time.Duration, proxied bool, buckets []string) error {
	ctx := context.Background()
	if proxied && (service != "s3" || rotate > 0) {
		return errors.New("-proxy: only of s3, and without -rotate")
	}
	var proxy *objectserver.Proxy
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
		if proxied {
			var stopProxy func()
			if proxy, stopProxy, err = objectserver.RunProxy(s.Endpoint); err != nil {
				return err
			}
			defer stopProxy()
			s.Endpoint = proxy.URL
		}
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
	if proxy != nil {
		return slow(proxy, os.Stdin, os.Stdout)
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// slow sets the proxy's delay to each line, and answers with what was counted.
func slow(p *objectserver.Proxy, in io.Reader, out io.Writer) error {
	var requests, bytes int64
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		delay, err := time.ParseDuration(lines.Text())
		if err != nil {
			return err
		}
		p.Break(func(*http.Request) objectserver.Fault { return objectserver.Fault{Delay: delay} })
		r, b := p.Counts()
		counts := map[string]int64{"requests": r - requests, "bytes": b - bytes}
		if err := json.NewEncoder(out).Encode(counts); err != nil {
			return err
		}
		requests, bytes = r, b
	}
	return lines.Err()
}
