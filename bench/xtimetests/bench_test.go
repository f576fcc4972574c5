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
	b.Run("by=xtime", func(b *testing.B) {
		for b.Loop() {
			x.AllowN(time.Now(), 1)
		}
	})
	b.Run("by=pace", func(b *testing.B) {
		for b.Loop() {
			p.AllowN(time.Now(), 1)
		}
	})
}

func BenchmarkReserve(b *testing.B) {
	x, p := real.NewLimiter(1e9, 1e9), pace.NewLimiter(1e9, 1e9)
	b.Run("by=xtime", func(b *testing.B) {
		for b.Loop() {
			x.Reserve()
		}
	})
	b.Run("by=pace", func(b *testing.B) {
		for b.Loop() {
			p.Reserve()
		}
	})
}

func BenchmarkWait(b *testing.B) {
	x, p := real.NewLimiter(1e9, 1e9), pace.NewLimiter(1e9, 1e9)
	ctx := context.Background()
	b.Run("by=xtime", func(b *testing.B) {
		for b.Loop() {
			_ = x.Wait(ctx)
		}
	})
	b.Run("by=pace", func(b *testing.B) {
		for b.Loop() {
			_ = p.Wait(ctx)
		}
	})
}
