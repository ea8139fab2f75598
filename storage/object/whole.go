package object

import "context"

// wholeReader is a store that reads an object whose size is not known by one request.
type wholeReader interface {
	// ReadWhole is the function ReadWhole of the store.
	ReadWhole(ctx context.Context, name string, most int64) ([]byte, int64, error)
}

// ReadWhole returns the bytes of an object, which are the caller's, and their number. Of an object of more than most
// bytes it returns the number alone. A service is asked once for one that is small; other stores are asked for the size
// first.
func ReadWhole(ctx context.Context, s Store, name string, most int64) ([]byte, int64, error) {
	if w, ok := s.(wholeReader); ok {
		return w.ReadWhole(ctx, name, most)
	}
	info, err := s.Stat(ctx, name)
	if err != nil || info.Size > most {
		return nil, info.Size, err
	}
	b := make([]byte, info.Size)
	return b, info.Size, s.ReadAt(ctx, name, b, 0)
}
