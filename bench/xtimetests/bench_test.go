package main

import (
	"context"
	"testing"
	"time"

	real "golang.org/x/time/rate"

	pace "github.com/nextfree/pace/reserve/plug/xtime/rate"
)

// go test -run - -bench . -count 8 ./xtimetests: package xtime/rate beside the one whose API it has.

func BenchmarkAllowN(b *testing.B) {
	x, p := real.NewLimiter(1e9, 1e9), pace.NewLimiter(1e9, 1e9)
	beside(b, func() { x.AllowN(time.Now(), 1) }, func() { p.AllowN(time.Now(), 1) })
}

func BenchmarkReserve(b *testing.B) {
	x, p := real.NewLimiter(1e9, 1e9), pace.NewLimiter(1e9, 1e9)
	beside(b, func() { x.Reserve() }, func() { p.Reserve() })
}

func BenchmarkWait(b *testing.B) {
	x, p := real.NewLimiter(1e9, 1e9), pace.NewLimiter(1e9, 1e9)
	ctx := context.Background()
	beside(b, func() { _ = x.Wait(ctx) }, func() { _ = p.Wait(ctx) })
}

func beside(b *testing.B, xtime, pace func()) {
	for name, call := range map[string]func(){"by=xtime": xtime, "by=pace": pace} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				call()
			}
		})
	}
}
