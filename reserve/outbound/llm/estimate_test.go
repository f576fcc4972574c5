package llm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is corrected, and by how much, after calls that came to a share of their estimates.
func TestForecast(t *testing.T) {
	after := func(calls int, share float64) *forecast {
		var r forecast
		for range calls {
			r.learn(1000, int(1000*share))
		}
		return &r
	}
	for _, c := range []struct {
		calls int
		share float64
		want  int
	}{
		{0, 1, 2000}, {1, 1, 1500}, {3, 1, 1100}, {10, 1, 1010}, {1000, 1, 1001},
		{1, 2, 2000}, {50, 2, 2000}, {10, 0.5, 515}, {1000, 0.5, 501}, {10, 0, 20}, {1, 1e6, maxTokens},
	} {
		require.Equal(t, c.want, after(c.calls, c.share).expect(1000, 0), c)
	}
	var r forecast
	require.Equal(t, 0, r.expect(0, 0))
}

// Calls that differ are charged more, the less of them are on their way; the last fifty or so
// count.
func TestForecastOfCallsThatDiffer(t *testing.T) {
	var r forecast
	for i := range 1000 {
		r.learn(1000, 500+1000*(i%2))
	}
	require.InDelta(t, 1000+3*500, r.expect(1000, 0), 30)
	require.InDelta(t, 1000+3*500/10, r.expect(1000, 99), 20)
	for range 300 {
		r.learn(1000, 3000)
	}
	require.InDelta(t, 3000, r.expect(1000, 99), 60)
}

// Input of which the request has no text, such as OpenAI's stored prompts, is expected to be what others used.
func TestInputWithoutText(t *testing.T) {
	var f forecast
	for range 5 {
		f.learn(0, 2000)
	}
	require.InDelta(t, 2000, f.expect(0, 0), 400)
}

// A call that breaks is charged what others came to for each of the answers that it wants.
func TestGuessOfSeveralAnswers(t *testing.T) {
	k := &class{outputs: guessedOutput}
	one, four := &prompt{most: true, output: 1000, choices: 1}, &prompt{most: true, output: 4000, choices: 4}
	require.Equal(t, []int{500, 2000}, []int{k.guess(one).output, k.guess(four).output})
	for range 200 {
		k.told(four, count{output: 400})
	}
	require.Equal(t, []int{100, 400}, []int{k.guess(one).output, k.guess(four).output})
}
