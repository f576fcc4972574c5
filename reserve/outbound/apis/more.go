package apis

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nextfree/pace/reserve/outbound"
)

// GitLab returns an option with the limits of GitLab.com's API for a user.
func GitLab() outbound.Option { return gitLab.option() }

var gitLab = api{
	API: API{
		Name: "GitLab", Call: "apis.GitLab()", Hosts: []string{"gitlab.com"},
		Says:   "2000 a minute for a user, 500 without one; and what responses say",
		Source: "https://docs.gitlab.com/user/gitlab_com/rate_limits/", Checked: day(2026, time.November, 28),
	},
	credential: []string{"Private-Token", "Job-Token", "?private_token", "?access_token", "?job_token"},
	limits: []limit{{n: 2000, per: time.Minute, paths: []string{"/api/**"}, cost: func(r *http.Request) int {
		for _, name := range []string{"Authorization", "Private-Token", "Job-Token"} {
			if r.Header.Get(name) != "" {
				return 1
			}
		}
		if strings.Contains(r.URL.RawQuery, "_token=") {
			return 1
		}
		return 4
	}}},
}

// Asana returns an option with the limits of Asana's API for a token: requests a minute, 150 of a free domain and 1500
// of others; searches; and requests in flight.
func Asana(perMinute int) outbound.Option { return asana(perMinute).option() }

func asana(perMinute int) api {
	return api{
		API: API{
			Name: "Asana", Call: "apis.Asana(150)", Hosts: []string{"app.asana.com"},
			Says:   "150 (free) or 1500 a minute for a token; searches 60 a minute; 50 reads and 15 writes in flight",
			Source: "https://developers.asana.com/docs/rate-limits", Checked: day(2026, time.November, 28),
		},
		given: []number{{"perMinute", float64(perMinute)}},
		limits: []limit{
			{name: "reads", n: 50, inFlight: true, methods: "GET HEAD"},
			{name: "writes", n: 15, inFlight: true, methods: "POST PUT PATCH DELETE"},
			{name: "search", n: 60, per: time.Minute, paths: []string{"/api/*/workspaces/*/tasks/search"}},
			{n: float64(perMinute), per: time.Minute},
		},
	}
}

// Trello returns an option with the limits of Trello's API.
func Trello() outbound.Option { return trello.option() }

var trello = api{
	API: API{
		Name: "Trello", Call: "apis.Trello()", Hosts: []string{"api.trello.com"},
		Says:    "300 in 10 s for a key, 100 for a token; 100 to /1/members in 15 minutes",
		Source:  "https://developer.atlassian.com/cloud/trello/guides/rest-api/rate-limits/",
		Checked: day(2026, time.November, 28),
	},
	credential: []string{"?key", "?token"},
	limits: []limit{
		{name: "members", n: 100, per: 15 * time.Minute, paths: []string{"/1/members/**"}},
		{name: "key", n: 300, per: 10 * time.Second, everyone: true, each: func(r *http.Request) string {
			return r.URL.Query().Get("key") + parameter(r.Header.Get("Authorization"), "oauth_consumer_key")
		}},
		{name: "token", n: 100, per: 10 * time.Second, adaptive: true},
	},
}

// Mailchimp returns an option with the limit of Mailchimp's Marketing API: requests in flight.
func Mailchimp() outbound.Option { return mailchimp.option() }

var mailchimp = api{
	API: API{
		Name: "Mailchimp", Call: "apis.Mailchimp()", Hosts: []string{"api.mailchimp.com"},
		Says:   "10 in flight for an account",
		Source: "https://mailchimp.com/developer/marketing/docs/fundamentals/", Checked: day(2026, time.November, 28),
	},
	dialect: outbound.Dialect{
		Name: "Mailchimp", Signs: []outbound.Sign{{Status: http.StatusTooManyRequests, NotRate: true}},
	},
	limits: []limit{{name: "concurrent", n: 10, inFlight: true}},
}

// Strava returns an option with the limits of Strava's API for an application, as responses tell them: all its
// athletes share them.
func Strava() outbound.Option { return strava.option() }

const quarter = 15 * time.Minute

var strava = api{
	API: API{
		Name: "Strava", Call: "apis.Strava()", Hosts: []string{"www.strava.com"},
		Says:   "an application's 200 in a quarter of an hour and 2000 a day (UTC), half of them for what is no upload",
		Source: "https://developers.strava.com/docs/rate-limits/", Checked: day(2026, time.November, 28),
	},
	longest: 16 * time.Minute,
	limits: []limit{
		{name: "day", everyone: true, paths: stravaAPI},
		{name: "read, day", everyone: true, paths: stravaAPI, cost: stravaReads},
		{name: "quarter", everyone: true, paths: stravaAPI},
		{name: "read, quarter", everyone: true, paths: stravaAPI, cost: stravaReads},
	},
	dialect: outbound.Dialect{Name: "Strava", Read: readStrava},
}

var stravaAPI = []string{"/api/**"}

func stravaReads(r *http.Request) int {
	if r.Method == http.MethodPost && anyOf([]string{"/api/v3/activities", "/api/v3/uploads"}, r.URL.Path) {
		return 0
	}
	return 1
}

// readStrava reads pairs: of the quarter and of the day, which end at the same time for all.
func readStrava(h http.Header) (all []outbound.Left) {
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return nil
	}
	for _, of := range [][3]string{
		{"X-RateLimit-", "quarter", "day"}, {"X-ReadRateLimit-", "read, quarter", "read, day"},
	} {
		limits, used := strings.Split(h.Get(of[0]+"Limit"), ","), strings.Split(h.Get(of[0]+"Usage"), ",")
		for i, per := range []time.Duration{quarter, 24 * time.Hour} {
			if len(limits) != 2 || len(used) != 2 {
				break
			}
			limit, err := strconv.ParseFloat(strings.TrimSpace(limits[i]), 64)
			n, bad := strconv.ParseFloat(strings.TrimSpace(used[i]), 64)
			if err == nil && bad == nil {
				ends := now.Truncate(per).Add(per).Sub(now)
				all = append(all, outbound.Left{Of: of[i+1], Permits: max(0, limit-n), Limit: limit, Reset: ends})
			}
		}
	}
	return all
}

// Nominatim returns an option with the limit of OpenStreetMap's Nominatim, for an application.
func Nominatim() outbound.Option { return nominatim.option() }

var nominatim = api{
	API: API{
		Name: "Nominatim", Call: "apis.Nominatim()", Hosts: []string{"nominatim.openstreetmap.org"},
		Says:   "1 a second for an application, or it is blocked",
		Source: "https://operations.osmfoundation.org/policies/nominatim/", Checked: day(2026, time.November, 28),
	},
	limits: []limit{{n: 1, per: time.Second, everyone: true, adaptive: true}},
}

// ArXiv returns an option with the limits of arXiv's APIs.
func ArXiv() outbound.Option { return arXiv.option() }

var arXiv = api{
	API: API{
		Name: "arXiv", Call: "apis.ArXiv()", Hosts: []string{"arxiv.org"}, Says: "1 in 3 s, one connection",
		Source: "https://info.arxiv.org/help/api/tou.html", Checked: day(2026, time.November, 28),
	},
	limits: []limit{
		{name: "connection", n: 1, inFlight: true, everyone: true},
		{n: 1, per: 3 * time.Second, everyone: true},
	},
}

// CratesIO returns an option with the limit of crates.io's API.
func CratesIO() outbound.Option { return cratesIO.option() }

var cratesIO = api{
	API: API{
		Name: "crates.io", Call: "apis.CratesIO()", Hosts: []string{"crates.io"},
		Says:   "1 a second (not its index or its downloads)",
		Source: "https://crates.io/data-access", Checked: day(2026, time.November, 28),
	},
	limits: []limit{{n: 1, per: time.Second, everyone: true, paths: []string{"/api/**"}}},
}

// Telegram returns an option with the limits of Telegram's bots.
func Telegram() outbound.Option { return telegram.option() }

var telegram = api{
	API: API{
		Name: "Telegram", Call: "apis.Telegram()", Hosts: []string{"api.telegram.org"},
		Says:   "a bot's 30 messages a second, 1 a second to a chat, 20 a minute to a group",
		Source: "https://core.telegram.org/bots/faq", Checked: day(2026, time.November, 28),
	},
	limits: []limit{
		{name: "group", n: 20, per: time.Minute, each: bot(true), cost: func(r *http.Request) int {
			if chat := chat(r); strings.HasPrefix(chat, "-") || strings.HasPrefix(chat, "@") {
				return message(r)
			}
			return 0
		}},
		{name: "all", n: 30, per: time.Second, each: bot(false), cost: message},
		{name: "chat", n: 1, per: time.Second, each: bot(true), cost: message},
	},
}

var chatID = field("chat_id")

func chat(r *http.Request) string { return strings.Trim(chatID(r), `"`) }

// bot returns whose messages they are: a bot's, whose token is in the path, or a bot's to a chat.
func bot(chats bool) func(*http.Request) string {
	return func(r *http.Request) string {
		whose := in("/{}/**")(r)
		if chats {
			whose += " " + chat(r)
		}
		return whose
	}
}

// message returns 1 for what sends a message.
func message(r *http.Request) int {
	method := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	for _, kind := range []string{"send", "forwardMessage", "copyMessage"} {
		if strings.HasPrefix(method, kind) && method != "sendChatAction" {
			return 1
		}
	}
	return 0
}

// Riot returns an option with the limits of Riot Games' API for a key and a region: 20 a second and 100 in two minutes
// of a key for development, 50 and 6000 of a usual one for production.
func Riot(perSecond, perTwoMinutes int) outbound.Option {
	return riot(perSecond, perTwoMinutes).option()
}

func riot(perSecond, perTwoMinutes int) api {
	return api{
		API: API{
			Name: "Riot Games", Call: "apis.Riot(20, 100)", Hosts: []string{"api.riotgames.com"},
			Says:   "20 a second and 100 in 2 minutes for a key and a region; more for production",
			Source: "https://developer.riotgames.com/docs/portal", Checked: day(2026, time.November, 28),
		},
		credential: []string{"X-Riot-Token", "?api_key"}, perHost: true,
		given: []number{{"perSecond", float64(perSecond)}, {"perTwoMinutes", float64(perTwoMinutes)}},
		limits: []limit{
			{name: "second", n: float64(perSecond), per: time.Second},
			{name: "two minutes", n: float64(perTwoMinutes), per: 2 * time.Minute},
		},
	}
}
