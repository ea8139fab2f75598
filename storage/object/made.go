package object

import (
	"context"
	"errors"
	"fmt"
)

// Made returns what a creation has come to that carried an id and ended with err, an error as a Store returns it: nil
// if it made its object after all, and ErrExists if another creation did. A request may take effect and its answer be
// lost: the one that is sent again is then refused because of this call's own object. look returns the id that the
// object of the name carries. Do not call it after an error that says that the creation had no effect.
func Made(ctx context.Context, name, id string, err error, look func() (string, error)) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	found, lerr := look()
	switch {
	case lerr == nil && found == id:
		return nil
	case lerr == nil:
		return exists(name)
	case !errors.Is(err, ErrExists):
		return err
	case errors.Is(lerr, ErrNotFound):
		return fmt.Errorf("object %s: it existed, and was deleted meanwhile", name)
	}
	// It must not match ErrExists: the object may be this call's.
	return fmt.Errorf("object %s: it exists, and whether this call has made it cannot be found out: %w", name, lerr)
}
