package matrix

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

func moreAPIs() []API {
	return []API{
		{
			Name: "HubSpot", RTT: 100 * ms, Calls: 1000, Documented: hubSpot, Request: get("/crm/v3/objects/contacts"),
			Rules: []rule{{name: "rolling", of: every, quota: 100, log: 10 * time.Second}},
			Says: func(h http.Header, now time.Time, _ *http.Request, of func(string) state) {
				left, _ := of("rolling").left(now)
				h.Set("X-HubSpot-RateLimit-Max", "100")
				h.Set("X-HubSpot-RateLimit-Remaining", whole(left))
				h.Set("X-HubSpot-RateLimit-Interval-Milliseconds", "10000")
			},
			Refuse: func(f *refusal) { f.set(429, `{"policyName":"TEN_SECONDLY_ROLLING"}`) },
		},
		{
			Name: "Zendesk", RTT: 150 * ms, Calls: 1200, Documented: zendesk,
			Request: func(i int) (string, string, string) {
				if i%40 == 0 {
					return "GET", "/api/v2/incremental/tickets.json", ""
				}
				return "GET", fmt.Sprintf("/api/v2/tickets/%d.json", i%60), ""
			},
			Rules: []rule{
				{name: "export", of: to("/api/v2/incremental"), quota: 10, fixed: time.Minute},
				{name: "account", of: every, quota: 400, fixed: time.Minute},
			},
			Says: func(h http.Header, now time.Time, r *http.Request, of func(string) state) {
				left, ends := of("account").left(now)
				h.Set("Ratelimit-Limit", "400")
				h.Set("Ratelimit-Remaining", whole(left))
				h.Set("Ratelimit-Reset", seconds(ends))
				if s := of("export"); s.rule.name != "" {
					left, ends := s.left(now)
					h.Set("Zendesk-RateLimit-Incremental-Exports",
						fmt.Sprintf("total=10; remaining=%s; resets=%s", whole(left), seconds(ends)))
				}
			},
			Refuse: func(f *refusal) { f.set(429, "", "Retry-After", seconds(f.wait)) },
		},
		{
			Name: "Notion", RTT: 250 * ms, Calls: 500, Documented: notion, Request: get("/v1/pages"),
			Rules:  []rule{{name: "bucket", of: every, quota: 10, refill: 3}},
			Refuse: func(f *refusal) { f.set(429, `{"code":"rate_limited"}`, "Retry-After", seconds(f.wait)) },
		},
		{
			Name: "Airtable", RTT: 200 * ms, Calls: 500, Documented: airtable, Request: get("/v0/appX/Table"), Most: 40,
			Rules:  []rule{{name: "base", of: every, quota: 5, log: time.Second, penalty: 30 * time.Second}},
			Refuse: func(f *refusal) { f.set(429, `{"errors":[{"error":"RATE_LIMIT_REACHED"}]}`) },
		},
		{
			Name: "X", RTT: 120 * ms, Calls: 1500, Documented: xAPI,
			Request: func(i int) (string, string, string) {
				if i%6 == 0 {
					return "GET", "/2/tweets/search/recent", ""
				}
				return "GET", "/2/tweets", ""
			},
			Rules: []rule{
				{name: "search", of: to("/2/tweets/search"), quota: 60, fixed: 15 * time.Minute},
				{name: "tweets", quota: 300, fixed: 15 * time.Minute, of: func(r *http.Request) (string, float64) {
					if r.URL.Path == "/2/tweets" {
						return "", 1
					}
					return "", 0
				}},
			},
			Says:   xRateLimit("X-Rate-Limit-", "search", "tweets"),
			Refuse: func(f *refusal) { f.set(429, `{"title":"Too Many Requests"}`) },
		},
		{
			Name: "Google", RTT: 100 * ms, Calls: 2400, Documented: google, Request: get("/drive/v3/files"),
			Rules: []rule{{name: "user", of: every, quota: 600, fixed: time.Minute}},
			Refuse: func(f *refusal) {
				f.set(403, `{"error":{"errors":[{"domain":"usageLimits","reason":"userRateLimitExceeded","message":`+
					`"User Rate Limit Exceeded"}],"code":403,"message":"User Rate Limit Exceeded"}}`)
			},
		},
		{
			Name: "AWS", RTT: 60 * ms, Calls: 1500, Documented: aws,
			Request: func(int) (string, string, string) { return "POST", "/", `{}` },
			Rules:   []rule{{name: "bucket", of: every, quota: 100, refill: 20}},
			Refuse: func(f *refusal) {
				f.set(400, `{"__type":"ThrottlingException","message":"Rate exceeded"}`, "X-Amzn-Errortype", "ThrottlingException")
			},
		},
		{
			Name: "Azure ARM", RTT: 120 * ms, Calls: 3000, Documented: azure,
			Request: func(i int) (string, string, string) {
				if i%4 == 0 {
					return "PUT", "/subscriptions/1/x", `{}`
				}
				return "GET", "/subscriptions/1/x", ""
			},
			Rules: []rule{
				{name: "reads", of: by("GET"), quota: 250, refill: 25},
				{name: "writes", of: by("PUT"), quota: 200, refill: 10},
			},
			Says: func(h http.Header, now time.Time, _ *http.Request, of func(string) state) {
				for _, name := range []string{"reads", "writes"} {
					if s := of(name); s.rule.name != "" {
						left, _ := s.left(now)
						h.Set("X-Ms-Ratelimit-Remaining-Subscription-"+name, whole(left))
					}
				}
			},
			Refuse: func(f *refusal) { f.set(429, "", "Retry-After", seconds(f.wait)) },
		},
		{
			Name: "Okta", RTT: 150 * ms, Calls: 2000, Documented: okta, Request: get("/api/v1/users"),
			Takes: func(*http.Request) time.Duration { return 50 * ms },
			Rules: []rule{
				{name: "rate", of: every, quota: 600, fixed: time.Minute},
				{name: "concurrency", of: every, quota: 10, places: true},
			},
			Says: xRateLimit("X-Rate-Limit-", "rate"),
			Refuse: func(f *refusal) {
				f.set(429, `{"errorCode":"E0000047"}`)
				if f.rule == "concurrency" {
					f.set(429, `{"errorCode":"E0000047"}`, "X-Rate-Limit-Limit", "0", "X-Rate-Limit-Remaining", "0",
						"X-Rate-Limit-Reset", epoch(f.now.Add(30*time.Second)))
				}
			},
		},
		{
			Name: "Twilio", RTT: 100 * ms, Calls: 1000, Documented: twilio, Request: get("/2010-04-01/Accounts/A/Calls.json"),
			Takes:  func(*http.Request) time.Duration { return 400 * ms },
			Rules:  []rule{{name: "concurrency", of: every, quota: 8, places: true}},
			Refuse: func(f *refusal) { f.set(429, `{"code":20429}`) },
		},
		{
			Name: "Cloudflare", RTT: 80 * ms, Calls: 3000, Documented: cloudflare, Request: get("/client/v4/zones"),
			Rules:  []rule{{name: "user", of: every, quota: 1200, log: 5 * time.Minute, penalty: 5 * time.Minute}},
			Refuse: func(f *refusal) { f.set(429, `{"success":false}`) },
		},
		{
			Name: "Cloudflare, RateLimit", RTT: 80 * ms, Calls: 3000, Documented: cloudflare, Request: get("/client/v4/zones"),
			Rules: []rule{{name: "user", of: every, quota: 1200, log: 5 * time.Minute, penalty: 5 * time.Minute}},
			Says: func(h http.Header, now time.Time, _ *http.Request, of func(string) state) {
				left, ends := of("user").left(now)
				h.Set("RateLimit-Policy", `"default";q=1200;w=300`)
				h.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%s`, int(max(0, left)), seconds(ends)))
			},
			Refuse: func(f *refusal) { f.set(429, `{"success":false}`, "Retry-After", seconds(f.wait)) },
		},
		{
			Name: "SEC EDGAR", RTT: 100 * ms, Calls: 3000, Documented: sec, Request: get("/submissions/CIK0000320193.json"),
			Most: 20, Renewed: true,
			Rules:  []rule{{name: "all", of: every, quota: 10, log: time.Second, penalty: 10 * time.Minute}},
			Refuse: func(f *refusal) { f.set(403, "<html><body>Request Rate Threshold Exceeded</body></html>") },
		},
		{
			Name: "MediaWiki maxlag", RTT: 150 * ms, Calls: 600, Documented: mediaWiki, Request: get("/w/api.php"),
			Rules: []rule{
				{name: "rate", of: every, quota: 10, refill: 10},
				{name: "maxlag", of: every, closed: 20 * time.Second, again: 5 * time.Second},
			},
			Refuse: func(f *refusal) {
				if f.rule == "rate" {
					f.set(429, "", "Retry-After", seconds(f.wait))
					return
				}
				f.set(200, `{"error":{"code":"maxlag","info":"Waiting for a host: 6 seconds lagged"}}`,
					"Retry-After", "5", "X-Database-Lag", "6", "MediaWiki-API-Error", "maxlag")
			},
			Failed: func(body string) bool { return strings.Contains(body, "maxlag") },
		},
	}
}
