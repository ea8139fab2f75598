//go:build !linux

package object

import "context"

func (*Local) readPlain(context.Context, string, []Range) (bool, error) { return false, nil }
