package matrix

import (
	"net/http"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

var discordLearned []outbound.Option

func penalized(n int, per, penalty time.Duration) []outbound.Option {
	return []outbound.Option{
		outbound.WithLimit(outbound.Limit{Limiter: reserve.Must(window.New(n, per))}),
		outbound.WithDialect(outbound.Dialect{Body: func(*http.Response, []byte) (outbound.RefusalBody, bool) {
			return outbound.RefusalBody{RetryAfter: penalty}, true
		}}),
	}
}
