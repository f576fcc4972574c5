package matrix

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const ms = time.Millisecond

// every charges each call to one limit.
func every(*http.Request) (string, float64) { return "", 1 }

// to charges the calls whose path begins so.
func to(prefix string) func(*http.Request) (string, float64) {
	return func(r *http.Request) (string, float64) {
		if strings.HasPrefix(r.URL.Path, prefix) {
			return "", 1
		}
		return "", 0
	}
}

// by charges the calls of a method.
func by(methods string) func(*http.Request) (string, float64) {
	return func(r *http.Request) (string, float64) {
		if strings.Contains(methods, r.Method) {
			return "", 1
		}
		return "", 0
	}
}

func get(path string) func(int) (string, string, string) {
	return func(int) (string, string, string) { return http.MethodGet, path, "" }
}

// bodyOf returns what a request's body says, without reading the body that is sent.
func bodyOf(r *http.Request) (b struct {
	Channel string
	Cost    float64
}) {
	if r.GetBody == nil {
		return b
	}
	body, err := r.GetBody()
	if err != nil {
		return b
	}
	raw, _ := io.ReadAll(body)
	_ = json.Unmarshal(raw, &b)
	return b
}

func epoch(t time.Time) string { return strconv.FormatInt(ceil(t), 10) }

func whole(n float64) string { return strconv.Itoa(int(max(0, n))) }

// xRateLimit sends Limit, Remaining and Reset, with a prefix, of the rule that concerns the call.
func xRateLimit(prefix string, rules ...string) func(http.Header, time.Time, *http.Request, func(string) state) {
	return func(h http.Header, now time.Time, _ *http.Request, of func(string) state) {
		for _, name := range rules {
			if s := of(name); s.rule.name != "" {
				left, ends := s.left(now)
				h.Set(prefix+"Limit", whole(s.rule.quota))
				h.Set(prefix+"Remaining", whole(left))
				h.Set(prefix+"Reset", epoch(now.Add(ends)))
				return
			}
		}
	}
}

func notSearch(r *http.Request) (string, float64) {
	if strings.HasPrefix(r.URL.Path, "/search") {
		return "", 0
	}
	return "", 1
}

// points are GitHub's: 1 for a GET, 5 for what changes something.
func points(r *http.Request) (string, float64) {
	if r.Method == http.MethodGet {
		return "", 1
	}
	return "", 5
}

func slackMethod(name string) func(*http.Request) (string, float64) { return to("/api/" + name) }

// Twenty returns the APIs. Each simulator follows the public documentation; where that does not say how a server
// counts, it counts in a sliding window, which forgives least.
func Twenty() []API { return append(firstAPIs(), moreAPIs()...) }

func firstAPIs() []API {
	return []API{
		{
			Name: "GitHub", RTT: 150 * ms, Calls: 2400, Documented: gitHub,
			Request: func(i int) (string, string, string) {
				switch {
				case i%20 == 0:
					return "GET", "/search/code", ""
				case i%10 == 5:
					return "POST", fmt.Sprintf("/repos/a/b/issues/%d/comments", i%7), `{"body":"x"}`
				}
				return "GET", fmt.Sprintf("/repos/a/b/issues/%d", i%50), ""
			},
			Rules: []rule{
				{name: "core", of: notSearch, quota: 5000, fixed: time.Hour},
				{name: "search", of: to("/search"), quota: 30, fixed: time.Minute},
				{name: "points", of: points, quota: 900, log: time.Minute, penalty: time.Minute},
				{name: "content", of: by("POST"), quota: 80, log: time.Minute, penalty: time.Minute},
			},
			Says: func(h http.Header, now time.Time, r *http.Request, of func(string) state) {
				resource := "core"
				if strings.HasPrefix(r.URL.Path, "/search") {
					resource = "search"
				}
				h.Set("X-RateLimit-Resource", resource)
				xRateLimit("X-RateLimit-", resource)(h, now, r, of)
			},
			Refuse: func(f *refusal) {
				if f.penalty {
					f.set(403, `{"message":"You have exceeded a secondary rate limit.","documentation_url":"x"}`,
						"Retry-After", seconds(f.wait))
					return
				}
				f.set(403, `{"message":"API rate limit exceeded"}`)
			},
		},
		{
			Name: "Stripe", RTT: 80 * ms, Calls: 3000, Documented: stripe,
			Request: func(i int) (string, string, string) {
				return "GET", "/v1/" + []string{"charges", "customers", "invoices", "refunds"}[i%4], ""
			},
			Takes: func(*http.Request) time.Duration { return 60 * ms },
			Rules: []rule{
				{name: "global-rate", of: every, quota: 100, log: time.Second},
				{name: "endpoint-rate", of: func(r *http.Request) (string, float64) { return r.URL.Path, 1 },
					quota: 25, log: time.Second},
				{name: "global-concurrency", of: every, quota: 20, places: true},
			},
			Refuse: func(f *refusal) {
				f.set(429, `{"error":{"code":"rate_limit"}}`, "Stripe-Rate-Limited-Reason", f.rule)
			},
		},
		{
			Name: "Shopify REST", RTT: 120 * ms, Calls: 400, Documented: shopifyREST,
			Request: get("/admin/api/2026-10/products.json"),
			Rules:   []rule{{name: "bucket", of: every, quota: 40, refill: 2}},
			Says: func(h http.Header, now time.Time, _ *http.Request, of func(string) state) {
				left, _ := of("bucket").left(now)
				h.Set("X-Shopify-Shop-Api-Call-Limit", whole(40-left)+"/40")
			},
			Refuse: func(f *refusal) { f.set(429, "", "Retry-After", "2.0") },
		},
		{
			Name: "Shopify GraphQL", RTT: 120 * ms, Calls: 600, Documented: shopifyGraphQL,
			Request: func(i int) (string, string, string) {
				return "POST", "/admin/api/2026-10/graphql.json", fmt.Sprintf(`{"query":"x","cost":%d}`, 20+(i*37)%61)
			},
			Rules: []rule{{name: "points", quota: 1000, refill: 50,
				of: func(r *http.Request) (string, float64) { return "", bodyOf(r).Cost }}},
			Says: func(h http.Header, _ time.Time, _ *http.Request, _ func(string) state) { h.Set("X-Shopid", "1") },
			Refuse: func(f *refusal) {
				left, _ := f.state.left(f.now)
				f.set(200, fmt.Sprintf(`{"errors":[{"extensions":{"code":"THROTTLED"}}],"extensions":{"cost":{`+
					`"requestedQueryCost":%v,"throttleStatus":{"maximumAvailable":1000,"currentlyAvailable":%v,"restoreRate":50}}}}`,
					bodyOf(f.request).Cost, int(left)))
			},
			Failed: func(body string) bool { return strings.Contains(body, "THROTTLED") },
		},
		{
			Name: "Slack", RTT: 100 * ms, Calls: 600, Documented: slack,
			Request: func(i int) (string, string, string) {
				switch i % 10 {
				case 0, 2, 4, 6, 8:
					return "GET", "/api/conversations.history", ""
				case 1, 5:
					return "GET", "/api/users.list", ""
				}
				return "POST", "/api/chat.postMessage", fmt.Sprintf(`{"channel":"C%d","text":"x"}`, i/10%5)
			},
			Rules: []rule{
				{name: "tier 3", of: slackMethod("conversations.history"), quota: 50, log: time.Minute},
				{name: "tier 2", of: slackMethod("users.list"), quota: 20, log: time.Minute},
				{name: "channel", quota: 1, log: time.Second, of: func(r *http.Request) (string, float64) {
					_, n := slackMethod("chat.postMessage")(r)
					return bodyOf(r).Channel, n
				}},
			},
			Refuse: func(f *refusal) { f.set(429, `{"ok":false,"error":"ratelimited"}`, "Retry-After", seconds(f.wait)) },
		},
		{
			Name: "Discord", RTT: 90 * ms, Calls: 3000, Callers: 64, Documented: discord,
			Request: func(i int) (string, string, string) {
				path := fmt.Sprintf("/api/v10/channels/%d/messages", 1000+i/5*7%40)
				if i%5 == 0 {
					return "PUT", path + "/1/reactions/x/@me", ""
				}
				return "POST", path, `{"content":"x"}`
			},
			Rules: []rule{
				{name: "global", of: every, quota: 50, log: time.Second},
				{name: "messages", quota: 5, fixed: 5 * time.Second, of: discordChannel("POST")},
				{name: "reactions", quota: 1, fixed: 250 * ms, of: discordChannel("PUT")},
			},
			Says: func(h http.Header, now time.Time, r *http.Request, of func(string) state) {
				name := "messages"
				if r.Method == "PUT" {
					name = "reactions"
				}
				left, ends := of(name).left(now)
				h.Set("X-RateLimit-Bucket", name)
				h.Set("X-RateLimit-Limit", whole(of(name).rule.quota))
				h.Set("X-RateLimit-Remaining", whole(left))
				h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", ends.Seconds()))
			},
			Refuse: func(f *refusal) {
				global := f.rule == "global"
				f.set(429, fmt.Sprintf(`{"message":"x","retry_after":%.3f,"global":%v}`, f.wait.Seconds()+0.001, global),
					"Retry-After", seconds(f.wait), "X-RateLimit-Scope", map[bool]string{true: "global", false: "user"}[global])
				if global {
					f.header.Set("X-RateLimit-Global", "true")
				}
			},
		},
		{
			Name: "Jira", RTT: 120 * ms, Calls: 3000, Documented: jira,
			Request: func(i int) (string, string, string) {
				if i%5 == 0 {
					return "PUT", fmt.Sprintf("/rest/api/3/issue/K-%d", i/5%3), `{}`
				}
				return "GET", fmt.Sprintf("/rest/api/3/issue/K-%d", i%100), ""
			},
			Rules: []rule{
				{name: "jira-quota-tenant-based", of: points, quota: 65000, fixed: time.Hour},
				{name: "jira-burst-based", of: every, quota: 100, refill: 50},
				{name: "jira-per-issue-on-write", quota: 20, log: 2 * time.Second,
					of: func(r *http.Request) (string, float64) { _, n := by("PUT")(r); return r.URL.Path, n }},
			},
			Refuse: func(f *refusal) {
				f.set(429, "", "Retry-After", seconds(f.wait), "RateLimit-Reason", f.rule)
			},
		},
		{
			Name: "Salesforce", RTT: 150 * ms, Calls: 300, Documented: salesforce, Most: 4,
			Request: func(i int) (string, string, string) {
				if i%5 == 0 {
					return "GET", "/services/data/v62.0/query", ""
				}
				return "GET", "/services/data/v62.0/sobjects", ""
			},
			Takes: func(r *http.Request) time.Duration {
				if strings.HasSuffix(r.URL.Path, "query") {
					return 25 * time.Second
				}
				return 50 * ms
			},
			Rules: []rule{{name: "long", quota: 5, places: true, of: to("/services/data/v62.0/query")}},
			Says: func(h http.Header, _ time.Time, _ *http.Request, _ func(string) state) {
				h.Set("Sforce-Limit-Info", "api-usage=18/15000")
			},
			Refuse: func(f *refusal) {
				f.set(403, `[{"message":"ConcurrentRequests (Concurrent API Requests) Limit exceeded.",`+
					`"errorCode":"REQUEST_LIMIT_EXCEEDED"}]`)
			},
		},
	}
}

func discordChannel(method string) func(*http.Request) (string, float64) {
	return func(r *http.Request) (string, float64) {
		_, n := by(method)(r)
		return strings.Split(r.URL.Path, "/")[4], n
	}
}
