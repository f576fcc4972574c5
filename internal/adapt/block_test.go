package adapt

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// probe has a client call a server that refuses everything until a time, or until a minute after the
// last call, as a block says. It returns when a call is accepted, and how many were refused.
func probe(until float64, renewed, busy bool) (ends float64, refused int) {
	var b Block
	for now := 0.; ; {
		if now >= until {
			b.Accepted(at(now), at(now))
			return now, refused
		}
		if renewed {
			until = max(until, now+60)
		}
		refused++
		wait := b.Refused(at(now), at(now), busy)
		now += max(1, wait.Seconds())
	}
}

func TestBlock(t *testing.T) {
	for _, lasts := range []float64{31, 60, 600, 3600} {
		ends, refused := probe(lasts, false, true)
		require.LessOrEqual(t, ends, 1.03*lasts+1, "an outage")
		require.Less(t, refused, 300)
		ends, refused = probe(lasts, false, false)
		require.LessOrEqual(t, ends, gapGrowth*lasts+4, "a block")
		require.Less(t, refused, 60)
	}
	ends, refused := probe(60, true, false)
	require.InDelta(t, 300, ends, 40, "a block that each call renews")
	require.Less(t, refused, 50)
}

// What is refused together counts once: an outage of a minute does not end after ten.
func TestBlockOfVolleys(t *testing.T) {
	for _, busy := range []bool{false, true} {
		for _, calls := range []int{1, 5, 64, 600} {
			var b Block
			now := 0.
			for now < 60 {
				sent, gap := now, time.Duration(0)
				for i := range calls {
					now = sent + 0.05 + float64(i)/1e4
					if next := b.Refused(at(now), at(sent), busy); next > 0 {
						gap = next
					}
				}
				now = sent + max(1, (time.Duration((now-sent)*1e9)+gap).Seconds())
			}
			require.Less(t, now, 60*gapGrowth+10, "%d calls, %v", calls, busy)
		}
	}
}

// A block begins only if nothing was accepted for 30 s, and there were 10 refusals; it is for those
// who sent too many calls to remember how long it lasted.
func TestBlockBegins(t *testing.T) {
	var b Block
	for i := range 40 {
		b.Accepted(at(float64(10*i)), at(float64(10*i)))
		for j := range 9 {
			require.Zero(t, b.Refused(at(float64(10*i+j)), at(float64(10*i+j)), false))
		}
	}
	require.False(t, b.On())
	b.Accepted(at(999), at(999))
	for i := range 9 {
		require.Zero(t, b.Refused(at(1000+float64(i)*10), at(1000+float64(i)*10), false), "one at a time")
		b.Accepted(at(1001+float64(i)*10), at(1001+float64(i)*10))
	}
	for i := range 40 {
		b.Refused(at(2000+float64(i)), at(2000+float64(i)), false)
	}
	require.True(t, b.On())
	require.Equal(t, 50*time.Second, b.Accepted(at(2050), at(2049)))
	require.False(t, b.On())
	require.Zero(t, b.Refused(at(2051), at(2048), false), "sent before it ended")
	for i := range 40 {
		b.Refused(at(3000+float64(i)), at(3000+float64(i)), true)
	}
	require.True(t, b.On())
	require.Zero(t, b.Accepted(at(3050), at(3049)), "an outage is about nobody's rate")
}

// Where calls take a minute, one that was accepted long ago ends a block, but does not show that there was one.
func TestAnAnswerThatTookLong(t *testing.T) {
	var b Block
	for i := range 40 {
		b.Refused(at(1000+float64(i)), at(1000+float64(i)), false)
	}
	require.True(t, b.On())
	require.Zero(t, b.Accepted(at(1041), at(990)))
	require.False(t, b.On())
}

// A rate that led to a block is left for a lower one, and kept for 50 times as long as the block.
func TestBlocked(t *testing.T) {
	r := New(16)
	send(&r, 16, 0, 10)
	r.Refused(at(10), at(10), at(10), false)
	for i := range 40 {
		r.Refused(at(11+float64(i)), at(11+float64(i)), at(11+float64(i)), false)
	}
	r.Blocked(at(71), time.Minute)
	require.InDelta(t, 16*math.Exp(-3*step), r.Now(), 0.2, "the refusals in the block say nothing of the rate")
	before := r.Now()
	send(&r, before, 71, 71+600)
	require.InEpsilon(t, before, r.Now(), 0.05)
}

// A rate that was accepted at its ceiling for long comes back after the first block: a neighbour may have been the cause.
func TestFirstBlockAfterLong(t *testing.T) {
	r := New(20)
	follow(&r, 0, 30)
	for i := range 80 {
		r.Refused(at(30+float64(i)), at(30+float64(i)), at(30+float64(i)), false)
	}
	r.Blocked(at(110), 80*time.Second)
	follow(&r, 110, 110+60)
	require.InEpsilon(t, 20, r.Now(), 0.02)
	for i := range 80 {
		r.Refused(at(170+float64(i)), at(170+float64(i)), at(170+float64(i)), false)
	}
	r.Blocked(at(250), 80*time.Second)
	follow(&r, 250, 250+60)
	require.Less(t, r.Now(), 16., "a second block within 25 of its lengths is the rate's doing")
}
