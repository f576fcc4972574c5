package outbound_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
)

// answers is a server that costs nothing: each request gets the same response.
type answers struct{ response http.Response }

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) { return &a.response, nil }

// BenchmarkRoundTrip is what the transport adds to a call that does not wait.
//
//	go test -run '^$' -bench RoundTrip -count 8 ./reserve/outbound
func BenchmarkRoundTrip(b *testing.B) {
	fast := func() reserve.Reserver { return reserve.Must(pace.NewBursty(1e9)) }
	classes := outbound.WithClasses(nil, fair.Class{Name: "people", Priority: 1}, fair.Class{Name: "batch"})
	ctx := context.Background()
	for _, c := range []struct {
		name string
		ctx  context.Context
		opts []outbound.Option
	}{
		{"one", ctx, nil},
		{"two", ctx, []outbound.Option{outbound.WithLimit(outbound.Limit{Name: "tokens", Limiter: fast()})}},
		{"classes", fair.With(ctx, "batch", "tenant"), []outbound.Option{classes}},
		{"adaptive", ctx, []outbound.Option{outbound.Adaptive()}},
		{"flight", ctx, []outbound.Option{outbound.WithMaxInFlight(100)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			server := &answers{http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}, "Date": {time.Now().UTC().Format(http.TimeFormat)}},
				Body: io.NopCloser(strings.NewReader(""))}}
			transport, err := outbound.New(server, fast(), c.opts...)
			if err != nil {
				b.Fatal(err)
			}
			r, err := http.NewRequestWithContext(c.ctx, "GET", "http://a.test/v1/things", nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				response, err := transport.RoundTrip(r)
				if err != nil {
					b.Fatal(err)
				}
				response.Body.Close()
				server.response.Body = http.NoBody
			}
		})
	}
}
