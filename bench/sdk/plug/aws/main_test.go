package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/plug/paceaws"
)

func TestNeverAboveTheRate(t *testing.T) {
	const rate = 200
	r := reserve.Must(paceaws.New(nil, reserve.Must(pace.NewBursty(rate, pace.WithBurst(0)))))
	s, _, began := run("pace", r, 40, 8)
	require.GreaterOrEqual(t, len(s.came), 40)
	require.Zero(t, s.over(began, rate))
	require.Positive(t, s.refused)
}

func TestOver(t *testing.T) {
	now := time.Now()
	s := &server{came: []time.Time{now, now.Add(time.Second), now.Add(time.Second)}}
	require.InDelta(t, 1, s.over(now, 1), 1e-9)
	require.Zero(t, s.over(now, 2))
}
