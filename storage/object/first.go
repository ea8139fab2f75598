package object

import "context"

// firster is a store whose requests for a listing can say that one object is enough.
type firster interface {
	// First is the function First of the store.
	First(ctx context.Context, prefix, startAfter string) (Info, bool, error)
}

// First returns the first object that List would yield, and whether there is one. A service is asked for no more.
func First(ctx context.Context, s Store, prefix, startAfter string) (Info, bool, error) {
	if f, ok := s.(firster); ok {
		return f.First(ctx, prefix, startAfter)
	}
	for info, err := range s.List(ctx, prefix, startAfter) {
		return info, err == nil, err
	}
	return Info{}, false, nil
}
