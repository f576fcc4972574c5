package matrix

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
)

// Situations that TestSituations runs: long ones are for PACE_LONG, or for SITUATIONS, a regular expression, which runs
// any and prints their figures.
const (
	short    = `^(stop of 1 s/unk|outage of 10 s at 5/|N2 .*/60|N5 (5|50) |N6x? |N7|N9|N15|N26|N30 50/s, 10 .*429, from.*)`
	fewer    = `^(outage of 10 s at 5/|N6 |N7|N12 bucket, Retry-After/unknown/unknown$|Okta/documented)`
	asserted = short + `|^(stop of (1|60) s|outage of (10|60) s at (5|50)/|N2 |N30 50/s, (3|10) .*(a 503 by|429, from))`
)

// pick returns the value for the run that the environment asks for.
func pick(usual, long string) string {
	if limitertest.Slower > 1 {
		usual = fewer
	}
	if os.Getenv("PACE_LONG") != "" {
		usual = long
	}
	return cmp.Or(os.Getenv("SITUATIONS"), usual)
}

// Situations go as they were measured.
func TestSituations(t *testing.T) {
	only := regexp.MustCompile(pick(short, asserted))
	for _, s := range Situations() {
		name := s.Name + "/" + s.Client.Name
		if !only.MatchString(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			o := Median(t, s.Kind, s.Client, s.Setting, runs())
			if os.Getenv("SITUATIONS") == "" {
				asMeasured(t, name, o)
				return
			}
			t.Logf("%-62s %-16s %6.2f  lost %7.1f s  refused %5.1f %% (%d) longest %5.0f s  done %d/%d",
				s.Name, s.Client.Name, o.Took, o.Lost, 100*o.Wasted, o.Refused, o.Longest, o.Done, o.Calls)
		})
	}
}

// unfinished are the cells in which not all calls are answered within twelve times the ideal, and why.
var unfinished = map[string]string{
	"N6x a block that refused calls renew/unknown": "every search ends in a block, and a block that refused calls renew takes five minutes to end",
}

// asMeasured compares with figures: all calls must be answered, unless it is known why not. What is worse by more than 2 % fails, and what is better is printed, for whoever made
// it so to write down there. With FIGURES in the environment it prints what to write.
func asMeasured(t *testing.T, name string, o Outcome) {
	t.Helper()
	if reason, known := unfinished[name]; known {
		require.False(t, o.Finished(), "it finishes now: take it from the list (%s)", reason)
		return
	}
	require.True(t, o.Finished(), "%d of %d calls", o.Done, o.Calls)
	line := fmt.Sprintf("\t%q: {%.3f, %.3f},", name, o.Took, o.Wasted)
	if os.Getenv("FIGURES") != "" {
		t.Log(line)
		return
	}
	want, ok := figures[name]
	require.True(t, ok, "no figures of %q", name)
	worse, better := compared(want, [2]float64{o.Took, o.Wasted})
	require.False(t, worse, "worse than %v: %+v", want, o)
	if better {
		t.Log("better than the figures: put it down\n" + line)
	}
}

// compared compares how long calls took, and the share that was refused, with what was measured before.
func compared(before, now [2]float64) (worse, better bool) {
	took, refused := 0.02*before[0], 0.02*before[1]+0.002
	worse = now[0] > before[0]+took || now[1] > before[1]+refused
	return worse, !worse && (now[0] < before[0]-took || now[1] < before[1]-refused)
}

// Figures bind one way: only what is worse fails.
func TestCompared(t *testing.T) {
	for now, want := range map[[2]float64]string{
		{1.1, 0.1}:    "same",
		{1.12, 0.103}: "same",
		{1.13, 0.1}:   "worse",
		{1.0, 0.11}:   "worse",
		{1.0, 0.1}:    "better",
		{1.1, 0.05}:   "better",
	} {
		worse, better := compared([2]float64{1.1, 0.1}, now)
		require.Equal(t, [2]bool{want == "worse", want == "better"}, [2]bool{worse, better}, now)
	}
}

// Programs that hear what is left share a quota: in any 30 s each has its part, and beside a greedy one a quarter. Two
// that only hear refusals share a bucket somewhat less evenly. (Beside a greedy one an adaptive program gets next to nothing of
// a bucket: it is always empty, so a quarter of it would cost as many refusals as the greedy one has.)
func TestSharing(t *testing.T) {
	only := regexp.MustCompile(pick(`N12 (500 .*/greedy/unknown|bucket, Retry-After/unknown/unknown$)`,
		`N12 (500 |bucket, [^/]*/(unknown/unknown|60 % too high/60 % too high)$)`))
	s := At(50, 1)
	s.Window = 10 * time.Second
	for _, k := range []Kind{
		{Name: "bucket, Retry-After", New: newBucket("1")}, {Name: "bucket, bare 429", New: newBucket("")},
		{Name: "500 in 10 s, headers", New: newWindows},
	} {
		for _, of := range [][]Client{
			{Known, Known}, {KnownAdapted, KnownAdapted}, {TooHigh, TooHigh}, {Unknown, Unknown},
			{Unknown, Unknown, Unknown}, {TooHigh, TooHigh, TooHigh},
			{greedy, Unknown}, {greedy, KnownAdapted},
		} {
			name, programs := k.Name, []Neighbour{}
			for i, c := range of {
				name += "/" + c.Name
				programs = append(programs, Neighbour{Client: c, From: time.Duration(i) * 20 * time.Second, Slots: 32})
			}
			if !only.MatchString("N12 " + name) {
				continue
			}
			synctest.Test(t, func(*testing.T) {
				<-time.After(time.Until(day))
				o := Together(k, programs, s, 60*time.Second, 600*time.Second)
				if k.Name == "500 in 10 s, headers" && of[len(of)-1].Name != Known.Name {
					part := 0.95 / float64(len(of))
					if of[0].Name == greedy.Name {
						part = 0.25
						require.Greater(t, o.Least[1], 0.2, name)
					} else {
						require.Greater(t, slices.Min(o.Least), part, name)
					}
					require.Greater(t, slices.Min(o.Shares), part, name)
					require.Greater(t, o.Used, 0.98, name)
					require.Less(t, o.Wasted[len(of)-1], 0.02, name)
				}
				if only.String() != os.Getenv("SITUATIONS") && k.Name != "500 in 10 s, headers" { // two of them
					require.Greater(t, slices.Min(o.Least), 0.1, name)
					require.Greater(t, slices.Min(o.Shares), 0.4, name)
					require.Greater(t, o.Used, 0.95, name)
					require.Less(t, slices.Max(o.Wasted), 0.015, name)
				}
				t.Logf("N12 %-60s used %5.1f %%  shares %.2f  least in 30 s %.2f  refused %.3f  longest %.1f s",
					name, 100*o.Used, o.Shares, o.Least, o.Wasted, o.Longest)
			})
		}
	}
}

func runs() int { n, _ := strconv.Atoi(os.Getenv("RUNS")); return max(1, n) }
