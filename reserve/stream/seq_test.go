package stream_test

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/stream"
)

// A watched sequence tells how far it was asked for, and whether it was stopped.
type watched struct {
	elements []int
	asked    int
	stopped  bool
}

func (w *watched) all(yield func(int) bool) {
	defer func() { w.stopped = true }()
	for _, e := range w.elements {
		w.asked++
		if !yield(e) {
			return
		}
	}
}

func itself(e int) int { return e }

// A yielded is what a loop gets, and when.
type yielded struct {
	element int
	err     error
	at      time.Duration
}

func collect(b *limitertest.Bench, seq iter.Seq2[int, error]) (got []yielded) {
	for e, err := range seq {
		got = append(got, yielded{e, err, passed(b)})
	}
	return got
}

func TestSeq(t *testing.T) {
	inBubble(t, 10, func(b *limitertest.Bench) {
		got := collect(b, stream.Seq(ctx, slices.Values([]int{5, 1, 0, 2, 1}), b, itself))
		require.Equal(b, []yielded{{5, nil, 0}, {1, nil, 500 * ms}, {0, nil, 500 * ms}, {2, nil, 600 * ms}, {1, nil, 800 * ms}}, got)
		require.Equal(b, 900*ms, b.FreeAt())
	})
}

func TestSeqCostsOneEach(t *testing.T) {
	inBubble(t, 10, func(b *limitertest.Bench) {
		seq := stream.Seq(ctx, slices.Values([]int{7, 8, 9}), b, nil)
		require.Equal(b, []yielded{{7, nil, 0}, {8, nil, 100 * ms}, {9, nil, 200 * ms}}, collect(b, seq))
		require.Equal(b, []yielded{{7, nil, 300 * ms}, {8, nil, 400 * ms}, {9, nil, 500 * ms}}, collect(b, seq), "again")
	})
}

func TestSeqStopsEarly(t *testing.T) {
	inBubble(t, 10, func(b *limitertest.Bench) {
		w := &watched{elements: []int{1, 2, 3, 4}}
		for e, err := range stream.Seq(ctx, w.all, b, itself) {
			require.NoError(b, err)
			if e == 2 {
				break
			}
		}
		require.Equal(b, 2, w.asked)
		require.True(b, w.stopped)
		require.Equal(b, 300*ms, b.FreeAt(), "paid for what it got")
	})
}

func TestSeqEndsWithTheError(t *testing.T) {
	inBubble(t, 10, func(b *limitertest.Bench) {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(150*ms, func() { cancel(errGone) })
		w := &watched{elements: []int{1, 2, 3, 4}}
		require.Equal(b, []yielded{{1, nil, 0}, {2, nil, 100 * ms}, {0, errGone, 150 * ms}}, collect(b, stream.Seq(ctx, w.all, b, itself)))
		require.True(b, w.stopped)
		require.Equal(b, 300*ms, b.FreeAt())
		require.Equal(b, []yielded{{0, errGone, 150 * ms}}, collect(b, stream.Seq(ctx, w.all, b, itself)))
		free := func(int) int { return 0 }
		require.Equal(b, []yielded{{0, errGone, 150 * ms}}, collect(b, stream.Seq(ctx, w.all, b, free)), "also where nothing costs")
		for _, err := range stream.Seq(ctx, w.all, b, free) {
			require.Same(b, errGone, err)
			break
		}
	})
}

func TestSeqOfBadCosts(t *testing.T) {
	inBubble(t, 10, func(b *limitertest.Bench) {
		got := collect(b, stream.Seq(ctx, slices.Values([]int{1, -2, 3}), b, itself))
		require.Len(b, got, 2)
		require.Zero(b, got[1].element)
		var bad *reserve.ValueError
		require.ErrorAs(b, got[1].err, &bad)
		require.EqualError(b, bad, "pace: permits is -2; want at least 1")
		require.Equal(b, 100*ms, b.FreeAt())
	})
}
