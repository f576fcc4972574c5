package reply

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// received is when the responses below were received; their Date says the same.
var received = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) // 1795262400

// headers makes a header out of lines.
func headers(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		h.Add(name, value)
	}
	return h
}

// read reads a response with a status and these headers.
func read(status int, h http.Header) Reply {
	return Read(&http.Response{StatusCode: status, Header: h, Body: http.NoBody}, received)
}

func TestRetryAfter(t *testing.T) {
	const never = -1
	for _, c := range []struct {
		header string
		want   time.Duration
	}{
		{"Retry-After: 120", 2 * time.Minute},
		{"Retry-After:  7 ", 7 * time.Second},
		{"Retry-After: 0", 0},
		{"Retry-After: 1.5", 1500 * time.Millisecond},
		{"Retry-After: 0.3000000000000000000001", 300 * time.Millisecond},
		{"Retry-After: 007", 7 * time.Second},
		{"Retry-After: Sat, 21 Nov 2026 12:00:30 GMT", 30 * time.Second},
		{"Retry-After: Saturday, 21-Nov-26 12:00:30 GMT", 30 * time.Second},
		{"Retry-After: Sat Nov 21 12:00:30 2026", 30 * time.Second},
		{"Retry-After: Sat, 21 Nov 2026 12:00:30 UTC", 30 * time.Second},
		{"Retry-After: Sat, 21 Nov 2020 12:00:30 GMT", 0},
		{"Retry-After: 1795262460", time.Minute},
		{"Retry-After: 1795262460.5", 60500 * time.Millisecond},
		{"Retry-After: 1795262460000", time.Minute},
		{"Retry-After: 1000000000", 0}, // the epoch, in 2001
		{"Retry-After: 999999999", never},
		{"Retry-After: 9223372037", never}, // overflows a time.Duration
		{"Retry-After: 1000000000000000000", never},
		{"Retry-After: 99999999999999999999999999999999999", never},
		{"Retry-After: " + strings.Repeat("9", 1<<20), never},
		{"Retry-After: 1e18", never},
		{"Retry-After: -1", never},
		{"Retry-After: +1", never},
		{"Retry-After: 1.", never},
		{"Retry-After: .5", never},
		{"Retry-After: NaN", never},
		{"Retry-After: Inf", never},
		{"Retry-After: 0x10", never},
		{"Retry-After: 1, 2", never},
		{"Retry-After: soon", never},
		{"Retry-After: ", never},
		{"Retry-After: Sat, 21 Nov 2026 12:00:30 PST", never},
		{"Retry-After-Ms: 250", 250 * time.Millisecond},
		{"retry-after-ms: 250.5", 250500 * time.Microsecond},
		{"X-Ms-Retry-After-Ms: 42", 42 * time.Millisecond},
		{"Retry-After-Ms: 1e3", never},
	} {
		s := read(429, headers(c.header))
		if c.want == never {
			require.False(t, s.Told, c.header)
			continue
		}
		require.True(t, s.Told, c.header)
		require.InDelta(t, c.want, s.After, float64(time.Millisecond), c.header)
	}
}

// The most specific header that can be read counts.
func TestRetryAfterPrecedence(t *testing.T) {
	h := headers("Retry-After: 3", "X-Ms-Retry-After-Ms: 2000", "Retry-After-Ms: 1000")
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
		require.Equal(t, want, read(429, h).After)
		switch want {
		case time.Second:
			h.Set("Retry-After-Ms", "never")
		case 2 * time.Second:
			h.Del("X-Ms-Retry-After-Ms")
		}
	}
}

// A server whose clock is wrong by an hour means the same as one whose clock is right.
func TestServerClock(t *testing.T) {
	for _, line := range []string{
		"Retry-After: Sat, 21 Nov 2026 13:00:30 GMT",
		"Retry-After: 1795266030",
	} {
		s := read(429, headers("Date: Sat, 21 Nov 2026 13:00:00 GMT", line))
		require.Equal(t, 30*time.Second, s.After, line)
		s = read(429, headers("Date: nonsense", line))
		require.Equal(t, time.Hour+30*time.Second, s.After, line)
	}
	s := read(429, headers("Date: Sat, 21 Nov 2026 13:00:00 GMT", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1795266030"))
	require.Equal(t, 30*time.Second, s.Limits[0].Stop)
}

// What a server says of its quota, in all dialects.
func TestQuota(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines string
		want  hints
	}{
		{"draft 11: a policy", `RateLimit-Policy: "default";q=100;w=60`, hints{rate: 100. / 60}},
		{"draft 11: the lower of two", `RateLimit-Policy: "burst";q=100;w=60,"slow";q=10;w=60`, hints{rate: 10. / 60}},
		{"draft 11: over two lines", "RateLimit-Policy: \"burst\";q=100;w=60\nRateLimit-Policy: \"slow\";q=10;w=60", hints{rate: 10. / 60}},
		{"draft 11: 1000 a day are not spread over it", `RateLimit-Policy: "burst";q=100;w=60,"daily";q=1000;w=86400`, hints{rate: 100. / 60}},
		{"draft 11: a policy without a window", `RateLimit-Policy: "default";q=100`, hints{}},
		{"draft 11: a quota of bytes", `RateLimit-Policy: "b";q=100;w=60;qu="content-bytes"`, hints{}},
		{"draft 11: a quota of requests", `RateLimit-Policy: "b";q=120;w=60;qu="requests";pk=:YQ==:;x`, hints{rate: 2}},
		{"draft 11: a token for a name", `RateLimit-Policy: default;q=120;w=60`, hints{rate: 2}},
		{"draft 11: what is left", `RateLimit: "default";r=50;t=30`, hints{rate: 50. / 30}},
		{"draft 11: what is left of a slow policy", "RateLimit-Policy: \"a\";q=120;w=60\nRateLimit: \"a\";r=15;t=30", hints{rate: 0.5}},
		{"draft 11: what is left of a fast one", "RateLimit-Policy: \"a\";q=60;w=60\nRateLimit: \"a\";r=60;t=30", hints{rate: 1}},
		{"draft 11: nothing for long", `RateLimit: "default";r=0;t=30`, hints{stop: 30 * time.Second}},
		{"draft 11: nothing for a moment", `RateLimit: "default";r=0;t=2`, hints{slow: true}},
		{"draft 11: little for a moment says little", `RateLimit: "default";r=3;t=1`, hints{}},
		{"draft 11: no time", `RateLimit: "default";r=0`, hints{}},
		{"draft 11: the longest stop", `RateLimit: "a";r=0;t=30,"b";r=0;t=60`, hints{stop: time.Minute}},
		{"draft 11: r=-1", `RateLimit: "default";r=-1;t=30`, hints{}},
		{"draft 11: t=-1", `RateLimit: "default";r=0;t=-1`, hints{}},
		{"draft 11: r=1.5", `RateLimit: "default";r=1.5;t=30`, hints{}},
		{"draft 11: the largest integer", `RateLimit: "default";r=0;t=999999999999999`, hints{}},
		{"draft 11: too large an integer", `RateLimit: "default";r=0;t=9999999999999999`, hints{}},
		{"draft 11: a trailing comma", `RateLimit: "default";r=0;t=30,`, hints{}},
		{"draft 11: an open string", `RateLimit: "default;r=0;t=30`, hints{}},
		{"draft 11: w=0", `RateLimit-Policy: "default";q=100;w=0`, hints{}},
		{"draft 11: q=0", `RateLimit-Policy: "default";q=0;w=60`, hints{}},
		{"draft 11: an inner list", `RateLimit-Policy: ("a" "b");q=100;w=60`, hints{}},
		{"draft 11: a megabyte", "RateLimit-Policy: " + strings.Repeat(`"a";q=1;w=60,`, 80000) + `"a";q=1;w=60`, hints{}},
		{"draft 7", "RateLimit: limit=20, remaining=0, reset=5\nRateLimit-Policy: 120;w=60, 4000;w=1800", hints{rate: 2, stop: 5 * time.Second}},
		{"draft 7: nonsense", "RateLimit: limit=20, remaining=x, reset=5", hints{}},
		{"draft 6", "RateLimit-Limit: 10\nRateLimit-Remaining: 0\nRateLimit-Reset: 5", hints{stop: 5 * time.Second}},
		{"draft 6, with a policy", "RateLimit-Policy: 120;w=60\nRateLimit-Limit: 120\nRateLimit-Remaining: 0\nRateLimit-Reset: 30", hints{rate: 2, stop: 30 * time.Second}},
		{"draft 11: bytes that are left", "RateLimit-Policy: \"b\";q=9000;w=60;qu=\"content-bytes\"\nRateLimit: \"b\";r=0;t=30,\"a\";r=60;t=30", hints{rate: 2}},
		{"GitLab", "RateLimit-Remaining: 0\nRateLimit-Reset: 1795262460", hints{stop: time.Minute}},
		{"GitHub", "X-RateLimit-Limit: 5000\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1795262460", hints{stop: time.Minute}},
		{"GitHub, some left", "X-RateLimit-Remaining: 30\nX-RateLimit-Reset: 1795262460", hints{rate: 0.5}},
		{"GitHub, for an hour", "X-RateLimit-Remaining: 3000\nX-RateLimit-Reset: 1795266000", hints{}},
		{"delta", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 60", hints{stop: time.Minute}},
		{"milliseconds", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1795262460000", hints{stop: time.Minute}},
		{"Discord", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1\nX-RateLimit-Reset-After: 12.5", hints{stop: 12500 * time.Millisecond}},
		{"OpenAI", "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 6m0s", hints{}},
		{"Anthropic", "anthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: 2026-11-21T12:01:00Z", hints{}},
		{"Okta", "X-Rate-Limit-Remaining: 0\nX-Rate-Limit-Reset: 1795262460", hints{stop: time.Minute}},
		{"a date", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: Sat, 21 Nov 2026 12:00:30 UTC", hints{stop: 30 * time.Second}},
		{"in the past", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1695262460", hints{}},
		{"a negative duration", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: -5s", hints{}},
		{"a negative rest", "X-RateLimit-Remaining: -1\nX-RateLimit-Reset: 60", hints{}},
		{"absurd", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 9999999999999999999999", hints{}},
		{"the draft goes before", "RateLimit: \"a\";r=120;t=60\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 60", hints{rate: 2}},
		{"a malformed one does not", "RateLimit: \"a\";r=oops;t=60\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 60", hints{stop: time.Minute}},
		{"cached", "Age: 5\nRetry-After: 5\nRateLimit: \"a\";r=0;t=60", hints{}},
		{"not cached", "Age: 0\nRateLimit: \"a\";r=0;t=60", hints{stop: time.Minute}},
		{"cached by httpcache", "X-From-Cache: 1\nRetry-After: 5", hints{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got hints
			for _, l := range read(200, headers(strings.Split(c.lines, "\n")...)).Limits {
				got = hints{l.Rate, l.Stop, l.Short}
			}
			require.InDelta(t, c.want.rate, got.rate, 1e-9)
			got.rate = c.want.rate
			require.Equal(t, c.want, got)
		})
	}
}

// hints are what a server says of its only limit.
type hints struct {
	rate float64
	stop time.Duration
	slow bool
}

// What a bucket will be full again says how it refills, and never stops for longer than one
// request's worth. The table of what providers of language models say.
func TestBuckets(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines string
		want  []Limit
	}{
		{"OpenAI, nothing left", "x-ratelimit-limit-requests: 5000\nx-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 1m0s",
			[]Limit{{Name: "requests", Rate: 5000. / 60, Bucket: true}}},
		{"OpenAI, some left", "x-ratelimit-limit-requests: 5000\nx-ratelimit-remaining-requests: 1000\nx-ratelimit-reset-requests: 48s",
			[]Limit{{Name: "requests", Left: 1000, Rate: 4000. / 48, Bucket: true}}},
		{"OpenAI, just begun", "x-ratelimit-limit-requests: 5000\nx-ratelimit-remaining-requests: 4999\nx-ratelimit-reset-requests: 12ms",
			[]Limit{{Name: "requests", Left: 4999, Rate: 1 / 0.012, Bucket: true}}},
		{"OpenAI, both", "x-ratelimit-limit-requests: 100\nx-ratelimit-remaining-requests: 40\nx-ratelimit-reset-requests: 60s\n" +
			"x-ratelimit-limit-tokens: 8000\nx-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 10s",
			[]Limit{{Name: "requests", Left: 40, Rate: 1, Bucket: true}, {Name: "tokens", Rate: 800, Bucket: true}}},
		{"Azure OpenAI, whole seconds", "x-ratelimit-limit-tokens: 8000\nx-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 10",
			[]Limit{{Name: "tokens", Rate: 800, Bucket: true}}},
		{"Azure OpenAI, unknown", "x-ratelimit-limit-requests: -1\nx-ratelimit-remaining-requests: -1\nx-ratelimit-reset-requests: 0", nil},
		{"Anthropic", "anthropic-ratelimit-input-tokens-limit: 60000\nanthropic-ratelimit-input-tokens-remaining: 0\n" +
			"anthropic-ratelimit-input-tokens-reset: 2026-11-21T12:01:00Z",
			[]Limit{{Name: "input-tokens", Rate: 60_000. / 59, Bucket: true}}},
		{"Anthropic, just begun", "anthropic-ratelimit-input-tokens-limit: 60000\nanthropic-ratelimit-input-tokens-remaining: 59990\n" +
			"anthropic-ratelimit-input-tokens-reset: 2026-11-21T12:00:01Z",
			[]Limit{{Name: "input-tokens", Left: 59_990, Bucket: true}}},
		{"a day's bucket, nearly full", "x-ratelimit-limit-requests: 10000\nx-ratelimit-remaining-requests: 9000\nx-ratelimit-reset-requests: 2h24m0s",
			[]Limit{{Name: "requests", Left: 9000, Rate: 1000./8640 + 150, Bucket: true}}},
		{"Atlassian Data Center", "X-RateLimit-Limit: 5\nX-RateLimit-Remaining: 0\nX-RateLimit-FillRate: 5\nX-RateLimit-Interval-Seconds: 10",
			[]Limit{{Rate: 0.5, Bucket: true}}},
		{"more is left than there is", "x-ratelimit-limit-requests: 10\nx-ratelimit-remaining-requests: 20\nx-ratelimit-reset-requests: 1s",
			[]Limit{{Name: "requests", Left: 20, Bucket: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(200, headers(strings.Split(c.lines, "\n")...)).Limits
			require.Len(t, got, len(c.want))
			for i, want := range c.want {
				require.InDelta(t, want.Rate, got[i].Rate, 1e-6)
				got[i].Rate = want.Rate
				require.Equal(t, want, got[i])
			}
		})
	}
	l := Limit{Bucket: true, Rate: 5000. / 60}
	require.Equal(t, 12*time.Millisecond, l.Wants(1))
	l.Left = 1
	require.Zero(t, l.Wants(1))
	require.Zero(t, (&Limit{Rate: 1}).Wants(1), "a window")
}

// FuzzHeaders: whatever a server sends, no wait is negative, absurd or a panic, and the body comes
// as it was.
func FuzzHeaders(f *testing.F) {
	f.Add("120", "Sat, 21 Nov 2026 12:00:00 GMT", `"a";q=100;w=60`, `"a";r=0;t=30`, "0", "1795262460", "250", "{}")
	f.Add("9223372037", "x", `100;w=60`, "limit=1, remaining=0, reset=1", "1", "6m0s", "1e9", `{"retry_after":1e300}`)
	f.Add("Sat, 21 Nov 9999 12:00:00 UTC", "", "", "", "-1", "-9223372036854775808ns", "0.00",
		`{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"-1s"}]}}`)
	f.Fuzz(func(t *testing.T, retryAfter, date, policy, limit, remaining, reset, millis, body string) {
		for i := range known.dialects {
			d := &known.dialects[i]
			h := http.Header{}
			for name, value := range map[string]string{
				"Retry-After": retryAfter, "Date": date, "RateLimit-Policy": policy, "Retry-After-Ms": millis,
				d.Remaining: remaining, d.Reset: reset, d.Limit: limit,
			} {
				if name != "" {
					h.Set(strings.Replace(name, "*", "tokens", 1), value)
				}
			}
			for _, status := range []int{200, 403, 429, 503} {
				for _, v := range []string{limit, ""} {
					h.Set("RateLimit", v)
					r := &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
					s := Read(r, received)
					waits := []time.Duration{s.After}
					for _, l := range s.Limits {
						waits = append(waits, l.Stop, l.Wants(1), l.Wants(1e9))
						require.True(t, l.Rate >= 0 && l.Rate <= fastest)
					}
					for _, wait := range waits {
						require.GreaterOrEqual(t, wait, time.Duration(0))
						require.LessOrEqual(t, wait, Longest+1)
					}
					require.True(t, s.Told || s.After == 0)
					require.True(t, s.Refused || !s.Final)
					got, err := io.ReadAll(r.Body)
					require.NoError(t, err)
					require.Equal(t, body, string(got))
				}
			}
		}
	})
}

// Which calls share a limit, and whom a refusal concerns.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		status int
		lines  []string
		body   string
		key    Key
		whole  bool
	}{
		{200, nil, "", Key{}, false},
		{200, []string{"X-RateLimit-Resource: search"}, "", Key{Name: "search"}, false},
		{200, []string{"X-RateLimit-Bucket: abcd"}, "", Key{Name: "abcd", Each: true}, false},
		{200, []string{`RateLimit-Policy: "default";q=100;w=60`}, "", Key{Name: "default"}, false},
		{200, []string{`RateLimit-Policy: "burst";q=100;w=60, "daily";q=1000;w=86400`, `RateLimit: "burst";r=9;t=9`}, "", Key{Name: "burst,daily"}, false},
		{200, []string{`RateLimit: "burst";r=9;t=9`}, "", Key{Name: "burst"}, false},
		{200, []string{"RateLimit-Policy: 100;w=60", "RateLimit: limit=100, remaining=50, reset=9"}, "", Key{}, false},
		{200, []string{"X-RateLimit-Resource: " + strings.Repeat("x", 1000)}, "", Key{Name: strings.Repeat("x", 64)}, false},
		{200, []string{"X-RateLimit-Scope: global"}, "", Key{}, false},
		{429, []string{"X-RateLimit-Scope: global"}, "", Key{}, true},
		{429, []string{"X-RateLimit-Global: true"}, "", Key{}, true},
		{429, nil, `{"retry_after":0.5,"global":true}`, Key{}, true},
		{429, []string{"X-RateLimit-Scope: user", "X-RateLimit-Bucket: abcd"}, `{"retry_after":0.5,"global":false}`, Key{Name: "abcd", Each: true}, false},
		{429, nil, `{"retry_after":0.5,"global":"yes"}`, Key{}, false},
	} {
		s := Read(&http.Response{StatusCode: c.status, Header: headers(c.lines...), Body: io.NopCloser(strings.NewReader(c.body))}, time.Now())
		require.Equal(t, c.key, s.Key, "%v", c.lines)
		require.Equal(t, c.whole, s.Whole, "%v %s", c.lines, c.body)
	}
	for path, want := range map[string]string{
		"/api/v10/channels/1/messages/2": "channels/1", "/guilds/3": "guilds/3", "/webhooks/4/t": "webhooks/4", "/users/5": "", "": "", "/channels": "",
	} {
		require.Equal(t, want, Resource(&http.Request{URL: &url.URL{Path: path}}), path)
	}
}

// A time that is too long is malformed: whatever else the response says counts.
func TestTooLongIsMalformed(t *testing.T) {
	const tooLong = "99999999999999"
	for _, c := range []struct {
		line string // with a time in it
		more []string
		body string
	}{
		{line: "Retry-After-Ms: ", more: []string{"Retry-After: 7"}},
		{line: "X-Ms-Retry-After-Ms: ", more: []string{"Retry-After: 7"}},
		{line: "Retry-After: ", more: []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1795262460"}},
		{line: "X-RateLimit-Reset: ", more: []string{"X-RateLimit-Remaining: 0", "RateLimit-Remaining: 0", "RateLimit-Reset: 60"}},
		{line: "X-A: ", more: []string{"Retry-After: 7"}, body: `{"retry_after":99999999}`},
		{line: "X-A: ", body: `{"retry_after":99999999}`},
	} {
		of := func(value string) Reply {
			h := headers(append(c.more, c.line+value)...)
			body := strings.ReplaceAll(c.body, "99999999", map[bool]string{true: "99999999", false: `"soon"`}[value == tooLong])
			return Read(&http.Response{StatusCode: 429, Header: h, Body: io.NopCloser(strings.NewReader(body))}, received)
		}
		require.Equal(t, of("soon"), of(tooLong), c.line)
	}
}
