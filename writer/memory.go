package writer

// The shares of Options.Memory; doc.go says of what.
func bufferShare(memory int64) int64 { return memory / 2 }
func writeShare(memory int64) int64  { return max(memory/4, 1) }
