package conform

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/redis"
	"github.com/nextfree/pace/internal/server"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// The arithmetic of Redis's script, judged by the same model as the ledger that a store runs.
func TestScriptQueues(t *testing.T) {
	addr, number := server.Start(t).Addr, 0
	for name, kinds := range map[string][]kind{
		"paid later":               kinds(false),
		"paid upfront":             kinds(true),
		"warming up":               warming(false),
		"warming up, paid upfront": warming(true),
	} {
		for what, with := range map[string]features{"charges": charges, "undone": undoing} {
			t.Run(name+", "+what, func(t *testing.T) {
				kinds, sum := ofShared(kinds), &tally{T: t}
				for seed := range max(40, queues(t)/5) {
					k := kinds[seed%len(kinds)]
					number++
					synctest.Test(t, func(t *testing.T) {
						client := &redis.Client{Addr: addr}
						defer client.Close()
						l, err := shared.New(bubbled{client}, fmt.Sprint(number), reserve.Must(k.policy()), shared.WithTimeout(time.Minute))
						require.NoError(t, err)
						j := newJudge(k, &sharedSubject{realSubject: realSubject{begin: time.Now()}, limiter: l})
						j.run(randomBytes(uint64(seed)), with)
						sum.add(j)
					})
				}
				sum.check(0.001)
			})
		}
	}
}

// A bubbled client runs the script on a real server, at the time of the bubble.
type bubbled struct{ *redis.Client }

// Eval runs the script with the time that its argument then ends with. Its keys live for an hour longer, since the
// server's own time goes on meanwhile.
func (b bubbled) Eval(ctx context.Context, script *shared.Script, key string, arg []byte) ([]byte, error) {
	source := strings.NewReplacer(
		"redis.call('TIME')", "{0, unpack('<d', arg, #arg - 7)}",
		"'PX', ttl - ttl % 1", "'PX', 3.6e6 + ttl - ttl % 1",
	).Replace(script.Source)
	sum := sha1.Sum([]byte(source))
	arg = binary.LittleEndian.AppendUint64(slices.Clone(arg), math.Float64bits(float64(time.Now().UnixMicro())))
	return b.Client.Eval(ctx, &shared.Script{Source: source, Hash: hex.EncodeToString(sum[:])}, key, arg)
}
