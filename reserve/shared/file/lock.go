package file

import (
	"context"
	"os"
)

// lock locks a file, for this process and this open file alone. It waits for the process that has it: in the kernel, so
// that it gets the lock as soon as it is free. If it fails, or the context ends first, it closes the file: that ends a
// lock that comes later.
func lock(ctx context.Context, f *os.File) error {
	for range spins {
		if tryLock(f) {
			return nil
		}
	}
	locked := make(chan error, 1)
	go func() { locked <- waitLock(f) }()
	select {
	case err := <-locked:
		if err != nil {
			f.Close()
		}
		return err
	case <-ctx.Done():
		go func() {
			<-locked
			f.Close()
		}()
		return context.Cause(ctx)
	}
}

// A holder needs some microseconds. So many tries are worth it before a goroutine is.
const spins = 8
