package outbound

import (
	"net/http"
	"time"

	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// A Dialect is how a family of servers tells what is left and until when. See [WithDialect]. Known are those of OpenAI,
// Azure OpenAI, Anthropic, OpenRouter, Mistral, Google, GitHub, GitLab, Discord, Telegram, Matrix, Slack, Shopify,
// Jira, Linear, monday.com, Okta, X, Zendesk, Atlassian Data Center, AWS, the clouds of Alibaba, Tencent and Baidu,
// MediaWiki, Salesforce, NetSuite, Facebook, Reddit, Airtable, SEC EDGAR, Brave, Imgur, Cerebras, HubSpot, Docker Hub,
// Mashery, WeChat, Feishu, Binance, Kraken, OKX, Bybit, KuCoin, Deribit, Bitfinex, Infura, Alchemy, Etherscan, Alpha
// Vantage and gRPC.
//
//	outbound.WithDialect(outbound.Dialect{
//		Name: "Acme", Remaining: "X-Acme-Left", Reset: "X-Acme-Until",
//	})
//
// # What servers say
//
// The first of these that is present counts.
//
//   - How long to stay away: Retry-After-Ms, X-Ms-Retry-After-Ms, X-Amz-Retry-After, Retry-After, other spellings
//     (X-RateLimit-Retry-After), and the bodies of refusals by Google, Discord, Telegram, Matrix, monday.com,
//     OpenRouter, Shopify's GraphQL and GitHub, also in gzip or deflate, or in words ("try again in 20s").
//     Retry-After may be seconds, decimals, one of HTTP's three date forms, or RFC 1123 with UTC or an offset. 1e9 and
//     more is a time since 1970. More than 32 days is malformed. Of several the longest counts.
//   - What is left: RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers-11, and 3 to 7 before it), and
//     the headers of a [Dialect].
//
// If the local clock is more than 1.5 s away from the response's Date, times are compared with Date. Malformed headers
// and responses from a cache are ignored, but for the Retry-After of a refusal, less its Age. Refusals that no retry
// can mend are returned at once. Status and headers alone count where a body is packed otherwise (br, zstd), or a
// status of gRPC comes in trailers behind a body.
type Dialect struct {
	// Name is for people: "GitHub".
	Name string
	// Limit, Remaining and Reset name headers. A * stands for each of the names in Of. Without Limit a bucket's rate is
	// not known.
	Limit, Remaining, Reset string
	// Of names limits, as in [Limit]: "requests", "tokens". Empty: the server tells none. Of others than requests only
	// what has the Name of a Limit is believed.
	Of []string
	// Bucket: Reset is when a bucket is full again, so it refills at (limit - remaining) / reset and stops no call for
	// longer than one request's worth. Otherwise Reset is the end of a window, and nothing goes before if nothing
	// remains.
	Bucket bool
	// Every is the window's length, if the server does not tell its end. When nothing is left, nothing goes for so
	// long: 10 s for HubSpot's 100 in 10 s.
	Every time.Duration
	// Refill is a bucket's rate per second, if the server tells only what is left: 25 for Azure's reads.
	Refill float64
	// Read, if not nil, reads what is left from values such as "api-usage=18/15000". It may return nil. Each response
	// calls it, under no lock.
	Read func(h http.Header) []Left
	// Signs make a response a refusal, whatever its status:
	//
	//	Signs: []outbound.Sign{{Status: 403, Body: "Request Rate Threshold Exceeded"}}
	Signs []Sign
	// Reason names a header with the Name of the limit that refused: Jira's RateLimit-Reason (jira-burst-based,
	// jira-per-issue-on-write), Stripe's Stripe-Rate-Limited-Reason.
	Reason string
	// Key names a header with a key of calls that share a limit: see [PerKey].
	Key string
	// Whole names a header: "true" or "global" says that a refusal concerns all calls.
	Whole string
	// Body, if not nil, reads at most 64 KiB of the body of a refusal (by its status or a Sign) or a 403, and reports
	// whether there were too many requests.
	Body func(r *http.Response, body []byte) (RefusalBody, bool)
}

// A Sign makes a response a refusal, for a [Dialect], if all its set fields hold.
type Sign struct {
	Status int // 400, 403, 200; 0: any; with a Body a refusal's, or 403
	// Host is the request's host, or a domain that it is in: "googleapis.com".
	Host string
	// Path is how the request's path ends.
	Path string
	// Header is present, with Value somewhere in it.
	Header, Value string
	// Body is a text in the first 64 KiB, which are read before the caller gets the response.
	Body string
	// Final: no retry can mend it, as at the end of a day's quota.
	Final bool
	// NotRate: it is not about the rate, but about too many calls at a time, or a lock (Stripe's lock_timeout). Only
	// the refused call waits.
	NotRate bool
	// After is the Penalty of a [Limit], for everybody: 30 s at Airtable.
	After time.Duration
}

// A Left is what headers say is left of a limit, for a [Dialect].
type Left struct {
	Of      string        // the Name of a limit; "": not told
	Permits float64       // that are left
	Limit   float64       // of so many; 0: not told
	Reset   time.Duration // until the window ends or, of a Bucket, until it is full; 0: not told
	Rate    float64       // at which a bucket refills, per second; 0: not told
}

// A RefusalBody is what the body of a refusal says, for a [Dialect].
type RefusalBody struct {
	RetryAfter time.Duration // 0: not told
	Final      bool          // no retry can mend it
	NotRate    bool          // it is not about the rate: see [Sign]
	Whole      bool          // it concerns all calls to the server
}

func (d Dialect) expanded() reply.Dialect {
	of := reply.Dialect{
		Name: d.Name, Limit: d.Limit, Remaining: d.Remaining, Reset: d.Reset, Of: d.Of, Bucket: d.Bucket,
		Every: d.Every, Refill: d.Refill, Reason: d.Reason, Key: d.Key, Whole: d.Whole,
	}
	for _, s := range d.Signs {
		of.Signs = append(of.Signs, reply.Sign{
			Status: s.Status, Host: s.Host, Path: s.Path, Header: s.Header, Value: s.Value, Body: s.Body,
			Final: s.Final, NotRate: s.NotRate, After: s.After,
		})
	}
	if d.Body != nil {
		of.Body = func(r *http.Response, body []byte) (reply.Refusal, bool) {
			b, ok := d.Body(r, body)
			return reply.Refusal{RetryAfter: b.RetryAfter, Final: b.Final, NotRate: b.NotRate, Whole: b.Whole}, ok
		}
	}
	if d.Read != nil {
		of.Read = func(h http.Header, _ time.Time) (left []reply.Left) {
			for _, l := range d.Read(h) {
				left = append(left, reply.Left(l))
			}
			return left
		}
	}
	return of
}
