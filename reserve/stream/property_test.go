package stream_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve/stream"
)

// moody reads and writes as little as it likes, and fails now and then.
type moody struct {
	random *rand.Rand
	moved  *bytes.Buffer // what went through
	from   io.Reader
}

func (m moody) Read(p []byte) (int, error) {
	n, err := m.from.Read(p[:m.random.IntN(len(p)+1)])
	m.moved.Write(p[:n])
	if err == nil && m.random.IntN(50) == 0 {
		err = errFull
	}
	return n, err
}

func (m moody) Write(p []byte) (int, error) {
	n := len(p)
	var err error
	if m.random.IntN(20) == 0 {
		n, err = m.random.IntN(len(p)+1), errFull
	}
	m.moved.Write(p[:n])
	return n, err
}

// Whatever the ends do, what was taken of the limiter is what went through the stream,
// to the byte.
func TestTakenIsWhatWentThrough(t *testing.T) {
	seed := rand.Uint64()
	defer func() { t.Logf("seed %d", seed) }()
	begin, total := time.Now(), 0
	const runs = 2000
	for run := range uint64(runs) {
		inBubble(t, 1000, func(b *limitertest.Bench) {
			random := rand.New(rand.NewPCG(seed, run))
			want := content(random.IntN(3000))
			m := moody{random, &bytes.Buffer{}, bytes.NewReader(want)}
			var got bytes.Buffer
			var n int64
			var err error
			switch random.IntN(5) {
			case 0:
				n, err = io.Copy(&got, stream.Reader(ctx, m, b))
			case 1:
				n, err = io.Copy(plainWriter{&got}, stream.Reader(ctx, m, b))
			case 2:
				n, err = io.Copy(&got, plainReader{stream.Reader(ctx, m, b)})
			case 3:
				n, err = io.Copy(stream.Writer(ctx, m, b), m.from)
			case 4:
				n, err = io.Copy(stream.Writer(ctx, m, b), plainReader{m.from})
			}
			if err != nil {
				require.Same(b, errFull, err, "run %d", run)
			} else {
				require.Len(b, want, int(n), "run %d", run)
			}
			through := m.moved.Bytes()
			require.EqualValues(b, len(through), n, "run %d", run)
			require.True(b, bytes.HasPrefix(want, through), "run %d", run)
			require.Equal(b, time.Duration(len(through))*ms, b.FreeAt(), "run %d", run)
			total += len(through)
		})
	}
	t.Logf("%d runs, %d bytes, %v", runs, total, time.Since(begin).Round(time.Millisecond))
}
