package matrix

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Beyond returns further well-known APIs. Each simulator follows the API's documentation, at the address beside it.
func Beyond() []API { return append(workAPIs(), publicAPIs()...) }

func workAPIs() []API {
	return []API{
		{ // docs.gitlab.com/user/gitlab_com/rate_limits: 2,000 a minute for a user; RateLimit-*, Retry-After, "Retry later"
			Name: "GitLab", Host: "gitlab.com", RTT: 120 * ms, Calls: 6000, Callers: 32,
			Request: func(i int) (string, string, string) {
				return "GET", fmt.Sprintf("/api/v4/projects/%d/issues", i%30), ""
			},
			Rules: []rule{{name: "user", of: every, quota: 2000, fixed: time.Minute}},
			Says: func(h http.Header, now time.Time, _ *http.Request, of func(string) state) {
				left, ends := of("user").left(now)
				h.Set("RateLimit-Limit", "2000")
				h.Set("RateLimit-Observed", whole(2000-left))
				h.Set("RateLimit-Remaining", whole(left))
				h.Set("RateLimit-Reset", epoch(now.Add(ends)))
			},
			Refuse: func(f *refusal) { f.set(429, "Retry later", "Retry-After", seconds(f.wait)) },
		},
		{ // developers.asana.com/docs/rate-limits: 150 a minute (free), search 60; 50 reads and 15 writes at a time
			Name: "Asana", Host: "app.asana.com", RTT: 150 * ms, Calls: 500, Callers: 64,
			Request: func(i int) (string, string, string) {
				switch i % 5 {
				case 0:
					return "GET", "/api/1.0/workspaces/12/tasks/search", ""
				case 1:
					return "POST", "/api/1.0/tasks", `{"data":{}}`
				}
				return "GET", fmt.Sprintf("/api/1.0/tasks/%d", i), ""
			},
			Takes: func(r *http.Request) time.Duration { return 200 * ms },
			Rules: []rule{
				{name: "minute", of: every, quota: 150, fixed: time.Minute},
				{name: "search", of: to("/api/1.0/workspaces"), quota: 60, fixed: time.Minute},
				{name: "reads", of: by("GET"), quota: 50, places: true},
				{name: "writes", of: by("POST"), quota: 15, places: true},
			},
			Refuse: func(f *refusal) { f.set(429, `{"errors":[{"message":"x"}]}`, "Retry-After", seconds(f.wait)) },
		},
		{ // developer.atlassian.com/cloud/trello/guides/rest-api/rate-limits: 300 in 10 s for a key, 100 for a token, members
			Name: "Trello", Host: "api.trello.com", RTT: 100 * ms, Calls: 600,
			Request: func(i int) (string, string, string) {
				if i%10 == 0 {
					return "GET", fmt.Sprintf("/1/members/%d?key=k&token=t", i), ""
				}
				return "GET", fmt.Sprintf("/1/cards/%d?key=k&token=t", i), ""
			},
			Rules: []rule{
				{name: "API_KEY_LIMIT_EXCEEDED", of: every, quota: 300, log: 10 * time.Second},
				{name: "API_TOKEN_LIMIT_EXCEEDED", of: every, quota: 100, log: 10 * time.Second},
				{name: "RATE_LIMIT_EXCEEDED", of: to("/1/members/"), quota: 100, log: 15 * time.Minute},
			},
			Refuse: func(f *refusal) {
				f.set(429, fmt.Sprintf(`{"error":%q,"message":"Rate limit exceeded"}`, f.rule))
			},
		},
		{ // mailchimp.com/developer/marketing/docs/fundamentals: 10 at a time, no header
			Name: "Mailchimp", Host: "us1.api.mailchimp.com", RTT: 80 * ms, Calls: 600, Callers: 32,
			Request: get("/3.0/lists"),
			Takes:   func(*http.Request) time.Duration { return 500 * ms },
			Rules:   []rule{{name: "connections", of: every, quota: 10, places: true}},
			Refuse:  func(f *refusal) { f.set(429, `{"title":"Too Many Requests"}`) },
		},
	}
}

func publicAPIs() []API {
	return []API{
		{ // developers.strava.com/docs/rate-limits: natural quarters of an hour and days; refused calls count for the day
			Name: "Strava", Host: "www.strava.com", RTT: 120 * ms, Calls: 250, Request: get("/api/v3/athlete/activities"),
			Rules: []rule{
				{name: "all", of: every, quota: 200, fixed: 15 * time.Minute},
				{name: "all, day", of: every, quota: 2000, fixed: 24 * time.Hour},
				{name: "read", of: by("GET"), quota: 100, fixed: 15 * time.Minute},
				{name: "read, day", of: by("GET"), quota: 1000, fixed: 24 * time.Hour},
			},
			Says: func(h http.Header, now time.Time, _ *http.Request, of func(string) state) {
				used := func(name string, n float64) string {
					left, _ := of(name).left(now)
					return whole(n - left)
				}
				h.Set("X-RateLimit-Limit", "200,2000")
				h.Set("X-RateLimit-Usage", used("all", 200)+","+used("all, day", 2000))
				h.Set("X-ReadRateLimit-Limit", "100,1000")
				h.Set("X-ReadRateLimit-Usage", used("read", 100)+","+used("read, day", 1000))
			},
			Refuse: func(f *refusal) { f.set(429, `{"message":"Rate Limit Exceeded"}`) },
		},
		{ // operations.osmfoundation.org/policies/nominatim: at most 1 a second; who does not heed is blocked, it does not say for how long
			Name: "Nominatim", Host: "nominatim.openstreetmap.org", RTT: 100 * ms, Calls: 200, Request: get("/search?q=x"),
			Rules:  []rule{{name: "second", of: every, quota: 1, log: time.Second}},
			Refuse: func(f *refusal) { f.set(429, "Bandwidth limit exceeded") },
		},
		{ // info.arxiv.org/help/api/tou.html: one request in three seconds, one connection
			Name: "arXiv", Host: "export.arxiv.org", RTT: 150 * ms, Calls: 100, Request: get("/api/query?search_query=x"),
			Rules: []rule{
				{name: "rate", of: every, quota: 1, log: 3 * time.Second},
				{name: "connections", of: every, quota: 1, places: true},
			},
			Takes:  func(*http.Request) time.Duration { return 300 * ms },
			Refuse: func(f *refusal) { f.set(503, "", "Retry-After", "5") },
		},
		{ // crates.io/data-access: at most 1 a second
			Name: "crates.io", Host: "crates.io", RTT: 100 * ms, Calls: 200, Request: get("/api/v1/crates/serde"),
			Rules:  []rule{{name: "second", of: every, quota: 1, log: time.Second}},
			Refuse: func(f *refusal) { f.set(429, `{"errors":[{"detail":"x"}]}`, "Retry-After", seconds(f.wait)) },
		},
		{ // core.telegram.org/bots/faq: 30 messages a second, 1 a second to a chat, 20 a minute to a group
			Name: "Telegram", Host: "api.telegram.org", RTT: 80 * ms, Calls: 1200, Callers: 64,
			Request: func(i int) (string, string, string) {
				chat := 1000 + i%60
				if i%20 == 0 {
					chat = -(1 + i/20%6)
				}
				return "POST", "/bot12:token/sendMessage", fmt.Sprintf(`{"chat_id":%d,"text":"x"}`, chat)
			},
			Rules: []rule{
				{name: "all", of: every, quota: 30, log: time.Second},
				{name: "chat", quota: 1, log: time.Second, of: func(r *http.Request) (string, float64) { return fmt.Sprint(chatOf(r)), 1 }},
				{name: "group", quota: 20, log: time.Minute, of: func(r *http.Request) (string, float64) {
					if chat := chatOf(r); chat < 0 {
						return fmt.Sprint(chat), 1
					}
					return "", 0
				}},
			},
			Refuse: func(f *refusal) {
				f.set(429, fmt.Sprintf(`{"ok":false,"error_code":429,"description":"Too Many Requests: retry after %[1]s",`+
					`"parameters":{"retry_after":%[1]s}}`, seconds(f.wait)))
			},
		},
		{ // developer.riotgames.com: 20 in 1 s and 100 in 2 minutes for a key and a region
			Name: "Riot", Host: "euw1.api.riotgames.com", RTT: 100 * ms, Calls: 350, Request: get("/lol/status/v4/platform-data"),
			Rules: []rule{
				{name: "second", of: every, quota: 20, fixed: time.Second},
				{name: "minutes", of: every, quota: 100, fixed: 2 * time.Minute},
			},
			Says: func(h http.Header, now time.Time, _ *http.Request, of func(string) state) {
				second, _ := of("second").left(now)
				minutes, _ := of("minutes").left(now)
				h.Set("X-App-Rate-Limit", "20:1,100:120")
				h.Set("X-App-Rate-Limit-Count", fmt.Sprintf("%v:1,%v:120", whole(20-second), whole(100-minutes)))
			},
			Refuse: func(f *refusal) {
				f.set(429, `{"status":{"status_code":429}}`, "Retry-After", seconds(f.wait), "X-Rate-Limit-Type", "application")
			},
		},
	}
}

func chatOf(r *http.Request) (chat int) {
	body, err := r.GetBody()
	if err != nil {
		return 0
	}
	var b [256]byte
	n, _ := body.Read(b[:])
	_, rest, _ := strings.Cut(string(b[:n]), `"chat_id":`)
	_, _ = fmt.Sscan(strings.SplitN(rest, ",", 2)[0], &chat)
	return chat
}
