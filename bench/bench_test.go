package bench

import (
	"fmt"
	"testing"

	"github.com/nextfree/pace/bench/internal/peers"
)

// cmd/ratios runs the same, in many short rounds in turn, and prints the ratios.

func BenchmarkTryAcquire(b *testing.B) {
	for _, goroutines := range []int{1, 2, 8} {
		benchmark(b, peers.TryAcquire(), goroutines)
	}
}

func BenchmarkTryRefused(b *testing.B) {
	for _, goroutines := range []int{1, 8} {
		benchmark(b, peers.TryRefused(), goroutines)
	}
}

func BenchmarkReserve(b *testing.B)          { benchmark(b, peers.Reserve(), 1) }
func BenchmarkReserveInQueue(b *testing.B)   { benchmark(b, peers.ReserveInQueue(), 1) }
func BenchmarkReserveAndCancel(b *testing.B) { benchmark(b, peers.ReserveAndCancel(), 1) }

func benchmark(b *testing.B, ops []peers.Op, goroutines int) {
	for _, op := range ops {
		b.Run(fmt.Sprintf("%s/goroutines=%d", op.Limiter, goroutines), op.Bench(goroutines))
	}
}
