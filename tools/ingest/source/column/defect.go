package column

import (
	"fmt"
	"runtime"
	"strings"
)

// A DefectError is a panic that was recovered. It is a defect of the reader whatever the input is, and says so: damage
// is an error that the reader returns.
type DefectError struct {
	value any
	place string // of the code that panicked
}

func (e *DefectError) Error() string {
	return fmt.Sprintf("internal error: %v (in %s): this is a defect of dsistore, please report it", e.value, e.place)
}

// Recovered makes an error of what recover returned. It is called by the deferred function that recovered, and gives a
// DefectError back as it is, so that a panic handed to another goroutine keeps its place.
func Recovered(value any) error {
	if e, ok := value.(*DefectError); ok {
		return e
	}
	return &DefectError{value, panicPlace()}
}

// panicPlace returns where the panic that is being recovered began: file and line of the innermost function that is not
// the runtime's.
func panicPlace() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for panicking := false; ; {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(f.Function, "runtime."):
			// The package's path and the file's name: where the module was built is of no use.
			dir := f.Function[:strings.LastIndexByte(f.Function, '/')+1]
			name := f.Function[len(dir):]
			pkg, _, _ := strings.Cut(name, ".")
			return fmt.Sprintf("%s%s/%s:%d", dir, pkg, f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
