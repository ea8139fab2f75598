//go:build !amd64 || purego

package gather

// Two is twoFallback.
func Two(dst, first, second, codes []int64) (bad int) { return twoFallback(dst, first, second, codes) }
