package remote

import (
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/storage/object"
)

// IDKey is the name in an object's metadata of the random id of the call that made it. A request may take effect and
// its answer be lost; when it is sent again, the service says that the object exists. The id tells whether it is this
// call's.
const IDKey = "dsi-write"

// Made returns nil if the creation with an id made its object, whatever error it ended with, object.ErrExists if
// another one did, and else what is known. err is the creation's error, nil where it succeeded; exists: the service
// refused it because there is an object. id asks the service for the id that the object carries; where there is no
// object, its error matches object.ErrNotFound.
func Made(name, want string, err error, exists bool, id func() (string, error)) error {
	if err == nil {
		return nil
	}
	got, ierr := id()
	switch {
	case ierr == nil && got == want:
		return nil
	case ierr == nil:
		return fmt.Errorf("%w: %s", object.ErrExists, name)
	case !exists:
		return err
	case errors.Is(ierr, object.ErrNotFound):
		return fmt.Errorf("object %s: it existed, and was deleted meanwhile", name)
	}
	// It must not match ErrExists: the object may be this call's.
	return fmt.Errorf("it exists, and whether this call has made it cannot be found out: %w", ierr)
}
