package shared_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/redis"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// A recorder remembers the last command that a limiter sent.
type recorder struct {
	*redis.Client
	last []any
}

func (r *recorder) Eval(ctx context.Context, script *shared.Script, key string, arg []byte) ([]byte, error) {
	r.last = []any{"EVALSHA", script.Hash, 1, key, append([]byte(nil), arg...)}
	return r.Client.Eval(ctx, script, key, arg)
}

// redisRate is the script of github.com/go-redis/redis_rate v10, to compare with.
const redisRate = `redis.replicate_commands()
local rate_limit_key = KEYS[1]
local burst = ARGV[1]
local rate = ARGV[2]
local period = ARGV[3]
local cost = tonumber(ARGV[4])
local emission_interval = period / rate
local increment = emission_interval * cost
local burst_offset = emission_interval * burst
local jan_1_2017 = 1483228800
local now = redis.call("TIME")
now = (now[1] - jan_1_2017) + (now[2] / 1000000)
local tat = redis.call("GET", rate_limit_key)
if not tat then tat = now else tat = tonumber(tat) end
tat = math.max(tat, now)
local new_tat = tat + increment
local allow_at = new_tat - burst_offset
local diff = now - allow_at
local remaining = diff / emission_interval
if remaining < 0 then
  local reset_after = tat - now
  local retry_after = diff * -1
  return {0, 0, tostring(retry_after), tostring(reset_after)}
end
local reset_after = new_tat - now
if reset_after > 0 then
  redis.call("SET", rate_limit_key, new_tat, "EX", math.ceil(reset_after))
end
local retry_after = -1
return {cost, remaining, tostring(retry_after), tostring(reset_after)}`

// TestServerTime measures the server's processor time for one call of the script: `PACE_MEASURE=1 go test -run
// ServerTime -v`.
func TestServerTime(t *testing.T) {
	if os.Getenv("PACE_MEASURE") == "" {
		t.Skip("it only measures; PACE_MEASURE is not set")
	}
	s := server.Start(t)
	c := connect(t, s)
	load := func(source string) string {
		sha, err := c.Do(t.Context(), "SCRIPT", "LOAD", source)
		require.NoError(t, err)
		return sha.(string)
	}
	record := func(name string, policy *reserve.Policy, before int) []any {
		r := &recorder{Client: c}
		l, err := shared.New(r, name, policy, shared.WithTimeout(time.Hour))
		require.NoError(t, err)
		if before > 0 {
			_, err = l.Reserve(t.Context(), before)
			require.NoError(t, err)
		}
		_, err = l.Reserve(t.Context(), 1)
		require.NoError(t, err)
		return r.last
	}
	fast := reserve.Must(pace.Bursty(1e9, pace.WithCapacity(1e9)))
	slow := reserve.Must(pace.Bursty(1, pace.WithCapacity(0)))
	commands := map[string][]any{
		"return 1":              {"EVALSHA", load("return 1"), 1, "one"},
		"TIME, GET, SET PX":     {"EVALSHA", load("local t = redis.call('TIME') redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], t[1], 'PX', 5000) return 1"), 1, "tgs"},
		"redis_rate":            {"EVALSHA", load(redisRate), 1, "rate", 1000000, 1000000, 1000, 1},
		"pace, granted at once": record("fast", fast, 0),
		"pace, in debt":         record("slow", slow, 1000),
		"pace, warm-up in debt": record("upfront", reserve.Must(pace.TokenBucket(1, 5)), 1000),
	}
	best := map[string]float64{}
	for range 8 {
		for name, command := range commands {
			cpu := pipelines(t, s.Addr, command)
			if was, ok := best[name]; !ok || cpu < was {
				best[name] = cpu
			}
		}
	}
	for name, us := range best {
		fmt.Printf("%-28s %5.1f us, %.2f of redis_rate\n", name, us, us/best["redis_rate"])
	}
	for _, n := range []int{1, 10, 100, 300, 301} {
		l := newShared(t, c, fmt.Sprint("size ", n), reserve.Must(pace.Bursty(1, pace.WithCapacity(300))))
		for range n {
			_, err := l.TryAcquire(t.Context(), 1)
			require.NoError(t, err)
		}
		bytes, err := c.Do(t.Context(), "MEMORY", "USAGE", l.Key())
		require.NoError(t, err)
		fmt.Printf("a key after %d requests: %d bytes\n", n, bytes)
	}
}

// pipelines sends a command in pipelines of 64, and returns the server's processor time for one, in microseconds.
func pipelines(t *testing.T, addr string, command []any) float64 {
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	in := bufio.NewReader(conn)
	var one strings.Builder
	fmt.Fprintf(&one, "*%d\r\n", len(command))
	for _, arg := range command {
		text, ok := arg.([]byte)
		if !ok {
			text = fmt.Append(nil, arg)
		}
		fmt.Fprintf(&one, "$%d\r\n%s\r\n", len(text), text)
	}
	pipe := strings.Repeat(one.String(), 64)
	used := func() float64 {
		_, err := io.WriteString(conn, "*2\r\n$4\r\nINFO\r\n$3\r\ncpu\r\n")
		require.NoError(t, err)
		text := read(t, in)
		sum := 0.0
		for line := range strings.Lines(text) {
			for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
				if value, ok := strings.CutPrefix(line, name); ok {
					seconds, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
					require.NoError(t, err)
					sum += seconds
				}
			}
		}
		return sum
	}
	const rounds = 100
	before := used()
	for range rounds {
		_, err := io.WriteString(conn, pipe)
		require.NoError(t, err)
		for range 64 {
			read(t, in)
		}
	}
	return (used() - before) / (rounds * 64) * 1e6
}

// read reads an answer.
func read(t *testing.T, in *bufio.Reader) string {
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	require.NotEqual(t, byte('-'), line[0], line)
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '$':
		text := make([]byte, n+2)
		_, err := io.ReadFull(in, text)
		require.NoError(t, err)
		return string(text)
	case '*':
		for range n {
			read(t, in)
		}
	}
	return line
}
