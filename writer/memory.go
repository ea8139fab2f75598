package writer

// The shares of Options.Memory for the buffer and for writing stripes, see doc.go.
func bufferShare(memory int64) int64 { return memory / 2 }
func writeShare(memory int64) int64  { return max(memory/4, 1) }
