// Command stream measures what pace's readers and writers cost where nothing is limited,
// and how exactly they keep to a limit.
//
//	go run ./stream
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/bench/internal/report"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/stream"
)

const (
	gib    = 1 << 30
	size   = gib / 8
	rounds = 100 // interleaved, and short: the best of each counts, since others use the machine as well
)

func main() {
	log.SetFlags(0)
	fmt.Println(report.Machine())
	fmt.Println("\n128 MiB copied without limit, bare io.Copy and through pace (rate +Inf), the best of", rounds)
	fmt.Println()
	unlimited()
	fmt.Println("\nCopied at a limit")
	fmt.Println()
	limited()
}

// A way is one way to copy size bytes.
type way struct {
	name string
	copy func(size int64, by reserve.Reserver) (int64, error)
}

var bg = context.Background()

var bare = way{"io.Copy", func(size int64, _ reserve.Reserver) (int64, error) {
	return io.Copy(newSink(), &source{size})
}}

var ways = []way{
	{"from a stream.Reader", func(size int64, by reserve.Reserver) (int64, error) {
		return io.Copy(newSink(), stream.Reader(bg, &source{size}, by))
	}},
	{"to a stream.Writer", func(size int64, by reserve.Reserver) (int64, error) {
		return io.Copy(stream.Writer(bg, newSink(), by), &source{size})
	}},
	{"through both, one limiter each", func(size int64, by reserve.Reserver) (int64, error) {
		other := reserve.Must(pace.NewBursty(by.(*reserve.Limiter).Rate()))
		return io.Copy(stream.Writer(bg, newSink(), by), stream.Reader(bg, &source{size}, other))
	}},
	{"Read by Read of 32 KiB", func(size int64, by reserve.Reserver) (int64, error) {
		return io.Copy(newSink(), struct{ io.Reader }{stream.Reader(bg, &source{size}, by)})
	}},
	{"Write by Write of 32 KiB", func(size int64, by reserve.Reserver) (int64, error) {
		return io.Copy(struct{ io.Writer }{stream.Writer(bg, newSink(), by)}, &source{size})
	}},
}

// unlimited compares with the bare copy.
func unlimited() {
	all := append([]way{bare}, ways...)
	best := make([]time.Duration, len(all))
	for round := range rounds {
		for i, w := range all {
			took := measure(w, size, math.Inf(1))
			if round == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	var rows [][]string
	for i, w := range all {
		rows = append(rows, []string{w.name, fmt.Sprintf("%.1f", gibs(size, best[i])),
			fmt.Sprintf("%.1f %%", 100*best[0].Seconds()/best[i].Seconds())})
	}
	report.Table(os.Stdout, []string{"copied", ">GiB/s", ">of io.Copy's speed"}, rows)
}

// limited measures how long a second's worth takes. The last step is borrowed, and not
// waited for: where it is 32 KiB of 1 MiB, that is 3 %.
func limited() {
	var rows [][]string
	for _, rate := range []float64{gib, gib / 16, gib / 1024} {
		for _, w := range ways {
			took := measure(w, int64(rate), rate)
			rows = append(rows, []string{w.name, fmt.Sprintf("%.0f", rate/(1<<20)), fmt.Sprintf("%.4f s", took.Seconds()),
				fmt.Sprintf("%+.2f %%", 100*(1/took.Seconds()-1))})
		}
	}
	report.Table(os.Stdout, []string{"copied", ">MiB at as many MiB/s", ">took", ">off the rate"}, rows)
}

func measure(w way, size int64, rate float64) time.Duration {
	limiter := reserve.Must(pace.NewBursty(rate))
	begin := time.Now()
	n, err := w.copy(size, limiter)
	if err != nil || n != size {
		log.Fatalf("%s: %d of %d bytes: %v", w.name, n, size, err)
	}
	return time.Since(begin)
}

func gibs(bytes int64, d time.Duration) float64 { return float64(bytes) / gib / d.Seconds() }

// memory is what is read and written: it fits into a processor's cache, as little as
// possible is to hide what pace costs.
var memory = make([]byte, 64<<10)

// A source is a plain reader, that copies out of memory.
type source struct{ left int64 }

func (s *source) Read(p []byte) (n int, err error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n = copy(p[:min(int64(len(p)), s.left)], memory)
	s.left -= int64(n)
	return n, nil
}

// A sink is a plain writer, that copies into memory.
type sink struct{ memory []byte }

func newSink() *sink { return &sink{make([]byte, 64<<10)} }

func (s *sink) Write(p []byte) (n int, err error) {
	for n < len(p) {
		n += copy(s.memory, p[n:])
	}
	return n, nil
}
