package reply

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What a body says of a refusal is found by the keys of its values, wherever they are: servers nest them as they like.
// Keys are compared in small letters, without _ and -. A new server is a word.
var (
	// Discord, Telegram, Matrix, Google's RetryInfo, monday.com and many others say until when.
	wait    = regexp.MustCompile(`^(retry|tryagain|resets?)(?:after|in|delay|at)(?:s|secs?|seconds|(ms|millis|milliseconds))?$`)
	inWords = regexp.MustCompile(`(?i)(?:try again|retry|wait|resets?|available)(?: in| after| for)?(?: about)? ` +
		`((?:\d+(?:\.\d+)?(?:ms|s|m|h))+|\d+(?:\.\d+)? (?:sec|min|hour)[a-z]*)\b`)

	// A code may be anywhere, or the name of a limit: Google's QuotaFailure and ErrorInfo, HubSpot's policyName.
	codes = strings.Fields("code type status error errorcode errcode errormsg errortype reason")
	named = strings.Fields("quotaid quotalimit policyname")
	// Those of GitHub, Slack, Linear, Google, Kraken, VK, Salesforce, AppSync and many others.
	tooMany = regexp.MustCompile(`(?i)rate.?limit|throttl|too.?many.?requests|request.?limit.?exceeded|` +
		`over.?(query|daily).?limit|complexity.?(exception|budget)|(quota|daily.?limit).?exceeded|\b429\b|` +
		concurrent.String())
	concurrent = regexp.MustCompile(`(?i)concurrency.?(limit.?)?exceeded`)
	daily      = regexp.MustCompile(`(?i)per.?day|daily`)

	// Shopify's points.
	points = [...]string{"requestedquerycost", "currentlyavailable", "restorerate", "maximumavailable"}
)

// found is what the values of a body say.
type found struct {
	Refusal
	refuses bool
	points  [len(points)]float64
}

// readBody reads a refusal, or what may be one. An answer with a result is none.
func readBody(r *http.Response, body []byte) (Refusal, bool) {
	answers, is := r.StatusCode < 400, refuses(r.StatusCode)
	if answers && !tooMany.Match(body) {
		return Refusal{}, false
	}
	f := found{Refusal: Refusal{headers: http.Header{}}}
	if of := decode(body); !answers || !hasResult(of) {
		walk("", "", of, f.value)
	}
	if is = is || f.refuses; is && len(f.headers) == 0 {
		if words := inWords.FindSubmatch(body); words != nil {
			f.headers.Set("Retry-After", string(words[1]))
		}
	}
	f.restores()
	return f.Refusal, is
}

// decode returns the first JSON value in a body: of a list, of lines, of an event, or behind Google's )]}'.
func decode(body []byte) (of any) {
	if begin := bytes.IndexAny(body, "{["); begin >= 0 {
		_ = json.NewDecoder(bytes.NewReader(body[begin:])).Decode(&of) // or nil
	}
	return of
}

var plain = strings.NewReplacer("_", "", "-", "")

func (f *found) value(under, key string, value any) {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		f.Whole = f.Whole || v && key == "global" // Discord's
	}
	if under == "headers" { // of the server behind OpenRouter
		f.headers.Set(key, text)
		return
	}
	key = plain.Replace(strings.ToLower(key))
	if says := wait.FindStringSubmatch(key); says != nil && text != "" && text != "0" && text[0] != '-' {
		f.headers.Set(map[bool]string{true: "Retry-After-Ms", false: "Retry-After"}[says[2] != ""], text)
		f.refuses = f.refuses || says[1] == "retry"
	}
	code := slices.Contains(codes, key) && tooMany.MatchString(text)
	f.refuses = f.refuses || code
	f.NotRate = f.NotRate || code && concurrent.MatchString(text)
	f.Final = f.Final || (code || slices.Contains(named, key)) && daily.MatchString(text)
	if i := slices.Index(points[:], key); i >= 0 {
		f.points[i], _ = value.(float64)
	}
}

// restores tells when a query that cost too many points can be paid.
func (f *found) restores() {
	cost, left, rate, most := f.points[0], f.points[1], f.points[2], f.points[3]
	switch {
	case cost > most && most > 0: // it will never be available
		f.Final = true
	case cost > left && rate > 0:
		f.RetryAfter = times(math.Ceil(1000*(cost-left)/rate), time.Millisecond)
	}
}

// hasResult reports whether a server has done what was asked, or a part of it.
func hasResult(of any) bool {
	if list, ok := of.([]any); ok {
		return slices.ContainsFunc(list, hasResult)
	}
	b, _ := of.(map[string]any)
	full := b["ok"] == true
	for _, key := range [...]string{"data", "result", "results", "response"} {
		walk("", "", b[key], func(_, _ string, value any) { full = full || value != nil })
	}
	return full
}

// walk shows the values in objects and lists, each with the key that it is under, and the key above.
func walk(under, key string, value any, show func(under, key string, value any)) {
	switch of := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(of)) {
			walk(key, name, of[name], show)
		}
	case []any:
		for _, value := range of {
			walk(under, key, value, show)
		}
	default:
		show(under, key, value)
	}
}
