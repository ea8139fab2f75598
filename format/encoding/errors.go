package encoding

import "strconv"

// A ReasonError says what is wrong with the bytes of a chunk. The caller adds the object, stripe and stream.
type ReasonError struct {
	Reason string
	// Unknown is a codec id, of the chunk or of one nested in it, that this version does not know but a later one may;
	// 0 if the bytes are wrong in any version.
	Unknown ID
}

func (e *ReasonError) Error() string { return e.Reason }

func reason(s string) error { return &ReasonError{Reason: s} }

// The errors are variables, so that damaged bytes cause no allocation.
var (
	errShort      = reason("chunk ends early")
	errLength     = reason("chunk has the wrong length for its count of values")
	errVarint     = reason("number is cut short or over 64 bits")
	errWidth      = reason("bit width is over 64")
	errPlainWidth = reason("plain width is not 1, 2, 4 or 8")
	errCodec      = reason("codec id is 0, or a codec of another kind of stream")
	errDepth      = reason("chunks are nested too deeply")
	errCount      = reason("nested count exceeds the count of values")
	errNested     = reason("nested chunk reaches beyond its parent")
	errRuns       = reason("run lengths do not add up to the count of values")
	errSequences  = reason("sequences copy from nowhere or do not add up to the count of values")
	errCode       = reason("dictionary code is out of range")
	errUnused     = reason("dictionary entry has no use")
	errPosition   = reason("positions do not increase or are out of range")
	errRange      = reason("value does not fit in 32 bits")
	errEmpty      = reason("codec needs at least one value")
	errZstdSize   = reason("uncompressed size is wrong for the count of values")
	errZstd       = reason("zstd frame is damaged, or not one frame")
	errBit        = reason("flag is not 0 or 1")
	errPadding    = reason("bits beyond the count are set")
	errExponent   = reason("decimal exponents are out of range")
	errPlane      = reason("byte plane has an unknown form")
	errOffsets    = reason("offsets do not increase or do not match the bytes")
	errStringSize = reason("one dictionary entry is used with two lengths")
	errRANS       = reason("entropy-coded classes do not end at the end of their states and words")
	errDst        = reason("destination is too short for the count of bits")
)

// errUnknown holds the error of each codec id that may not be registered.
var errUnknown = func() (errs [256]error) {
	for id := 1; id < len(errs); id++ {
		errs[id] = &ReasonError{Reason: "codec " + strconv.Itoa(id), Unknown: ID(id)}
	}
	return errs
}()

// wrongCodec returns the error for a chunk whose codec id is not of its family.
func wrongCodec(id ID) error {
	if id == 0 || id.codec() != nil {
		return errCodec
	}
	return errUnknown[id]
}
