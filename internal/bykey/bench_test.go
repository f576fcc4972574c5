package bykey_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// One key, against its parts: what the limiter alone takes, and a look-up in a map.
func BenchmarkOneKey(b *testing.B) {
	policy := reserve.Must(pace.Bursty(1e9))
	b.Run("limiter", func(b *testing.B) {
		l := policy.Limiter()
		for b.Loop() {
			l.TryAcquire(1)
		}
	})
	b.Run("map", func(b *testing.B) {
		m := map[string]int{}
		for i := range 1000 {
			m["user "+strconv.Itoa(i)] = i
		}
		key := "user 1"
		for b.Loop() {
			if _, ok := m[key]; !ok {
				b.Fatal("not there")
			}
		}
	})
	for _, n := range []int{1, 1000} {
		b.Run("keyed among "+strconv.Itoa(n), func(b *testing.B) {
			busy := reserve.Must(pace.Bursty(1e-3, pace.WithCapacity(1e12), reserve.WithStored(1e12)))
			keys := keyed.New(func(string) (*reserve.Policy, error) { return busy, nil })
			for i := range n {
				keys.TryAcquire("user "+strconv.Itoa(i), 1)
			}
			for b.Loop() {
				keys.TryAcquire("user 0", 1)
			}
		})
	}
}

// Many keys in no order, and new ones.
func BenchmarkKeys(b *testing.B) {
	const n = 100_000
	names := make([]string, n)
	for i, j := range rand.Perm(n) {
		names[j] = "user " + strconv.Itoa(i)
	}
	busy := reserve.Must(pace.Bursty(1e-3, pace.WithCapacity(1e12), reserve.WithStored(1e12)))
	fresh := func() *keyed.Limiters[string] {
		return keyed.New(func(string) (*reserve.Policy, error) { return busy, nil })
	}
	b.Run("insert", func(b *testing.B) {
		var keys *keyed.Limiters[string]
		for i := 0; b.Loop(); i++ {
			if i%n == 0 {
				keys = fresh()
			}
			keys.TryAcquire(names[i%n], 1)
		}
	})
	keys := fresh()
	for _, name := range names {
		keys.TryAcquire(name, 1)
	}
	for _, goroutines := range []int{1, 8} {
		b.Run("hit/"+strconv.Itoa(goroutines), func(b *testing.B) {
			var all sync.WaitGroup
			for g := range goroutines {
				all.Go(func() {
					for i := range b.N / goroutines {
						keys.TryAcquire(names[(g*n/goroutines+i)%n], 1)
					}
				})
			}
			all.Wait()
		})
	}
}
