package files_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/longshore/longshore/internal/provider/demo/files"
	"github.com/longshore/longshore/internal/test/demotest"
)

// BenchmarkCreate makes things by many callers at once, on the disk.
func BenchmarkCreate(b *testing.B) {
	for _, callers := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			f, err := files.Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			var made atomic.Int64
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for n := made.Add(1); n <= int64(b.N); n = made.Add(1) {
						if err := f.Create(b.Context(), demotest.Whole(fmt.Sprint("thing-", n))); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}
