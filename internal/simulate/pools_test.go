package simulate

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/dsistore/dsistore/storage/sst"
)

// TestTablesOfSeveralBlocks: tables of several blocks can be written in one bubble after the other. Without emptyPools
// that is a fatal error: "send on synctest channel from outside bubble".
func TestTablesOfSeveralBlocks(t *testing.T) {
	for range 5 {
		synctest.Test(t, func(t *testing.T) {
			w := sst.NewWriter(new(bytes.Buffer))
			for i := range 8 {
				if err := w.Add(fmt.Append(nil, i), make([]byte, sst.BlockSize/2)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := w.Finish(); err != nil {
				t.Fatal(err)
			}
		})
		emptyPools()
	}
}
