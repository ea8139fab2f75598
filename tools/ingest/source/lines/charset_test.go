package lines

import (
	"bytes"
	"io"
	"testing"
)

// TestWindows1252 holds the bytes 0x80 to 0x9f to the characters that Unicode's own table says.
func TestWindows1252(t *testing.T) {
	const want = "€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ"
	var b []byte
	for c := byte(0x80); c < 0xa0; c++ {
		b = append(b, c)
	}
	latin1, err := Charset("latin1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(latin1(bytes.NewReader(b)))
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
