package reply

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What a body says of a refusal is found by the keys of its values, wherever they are. Keys are compared in small
// letters, without _ and -.
var (
	// Discord, Telegram, Matrix, Google's RetryInfo, monday.com, Infura, Hugging Face and many others.
	wait = regexp.MustCompile(`^(?:(retry|tryagain|resets?)(?:after|in|delay|at)|(?:backoff|wait)(?:time|for)?|` +
		`estimatedtime)(?:s|secs?|seconds|(ms|millis|milliseconds))?$`)
	inWords = regexp.MustCompile(`(?i)(?:try again|retry|wait|resets?|available)(?: in| after| for)?(?: about)? ` +
		`((?:\d+(?:\.\d+)?(?:ms|s|m|h))+|\d+(?:\.\d+)? (?:sec|min|hour)[a-z]*)\b|` +
		`\b(?:until|at|after) (\d{10,13}|\d{4}-\d\d-\d\dT[\d:.]+Z)`)

	// A code may be anywhere, or the name of a limit: Google's QuotaFailure and ErrorInfo, HubSpot's policyName.
	codes = strings.Fields("code type status error errors errorcode errcode errormsg errortype reason exceptioncode")
	named = strings.Fields("quotaid quotalimit policyname")
	texts = strings.Fields("message msg detail description errormessage errordescription statusmsg")
	// Codes of GitHub, Slack, Linear, Google, Kraken, VK, Salesforce, AppSync, AWS, Alibaba and many others.
	tooMany = regexp.MustCompile(`(?i)rate.?limit|throttl|maxlag|too.?many.?requests|request.?limit.?exceeded|slowdown|` +
		`over.?(query|daily).?limit|complexity.?(exception|budget)|(quota|daily.?limit).?exceeded|\b429\b|` +
		`provisioned.?throughput|prior.?request|bandwidth.?limit|` + concurrent.String())
	full = regexp.MustCompile(`(?i)storage`) // it is no rate
	// A sentence must say more than the name of a limit.
	sentence = regexp.MustCompile(`(?i)\b(?:rate|request|call)s?[ -]limits?\b.{0,30}\b(?:exceeded|reached|hit)\b|` +
		`\b(?:exceed(?:s|ed)?|reached|hit)\b.{0,30}\b(?:rate|request|call)s?[ -]limit|\btoo many (?:requests|calls)|` +
		`\bthrottl(?:ed|eexceeded|ing)\.?$|throttleexceeded|out of rate limit|` + concurrent.String())
	concurrent = regexp.MustCompile(`(?i)concurren.{0,40}exceed|(?:too.?many|exceed\w*|exhausted).{0,40}concurren`)
	daily      = regexp.MustCompile(`(?i)per.?day|daily`)

	// Shopify's points.
	points  = [...]string{"requestedquerycost", "currentlyavailable", "restorerate", "maximumavailable"}
	results = strings.Fields("data result results response")
)

// found is what the values of a body say.
type found struct {
	Refusal
	refuses  bool
	crowd    bool // in words: there are too many at a time
	answers  bool // by its status
	answered bool // the server has done what was asked, or a part of it: the rest is not read
	points   [len(points)]float64
}

// readBody reads a refusal, or what may be one. An answer with a result is none, and one that is cut off neither.
func readBody(r *http.Response, body []byte) (Refusal, bool) {
	f := found{Refusal: Refusal{headers: http.Header{}}, answers: r.StatusCode < 400}
	f.value("", "", "code", cmp.Or(get(r.Header, "X-Amzn-Errortype"), get(r.Header, "Mediawiki-Api-Error")))
	if whole := f.read(body, ""); f.answers && (!whole || f.answered) {
		return Refusal{}, false
	}
	if len(f.headers) == 0 {
		if words := inWords.FindSubmatch(body[:min(len(body), maxWords)]); words != nil {
			f.headers.Set("Retry-After", string(cmp.Or(string(words[1]), string(words[2]))))
		}
	}
	f.NotRate = f.NotRate || f.crowd && len(f.headers) == 0 && get(r.Header, "Retry-After") == ""
	f.restores()
	return f.Refusal, f.refuses || Refuses(r.StatusCode)
}

var element = regexp.MustCompile(`<(\w+)>([^<]*)</`)

// read reads the first JSON value in a text, as far as that came (behind Google's )]}', too), or else XML. Top is the
// key at the top, if the text is in another one.
func (f *found) read(text []byte, top string) (whole bool) {
	begin := bytes.IndexAny(text, "{[")
	if begin < 0 {
		for _, e := range element.FindAllSubmatch(text[:min(len(text), maxWords)], -1) {
			f.value(top, "", string(e[1]), string(e[2]))
		}
		return true
	}
	return f.walk(json.NewDecoder(bytes.NewReader(text[begin:])), top, "", "", 0)
}

const (
	deepest  = 1000    // nested values
	maxWords = 4 << 10 // bytes in which words or XML are read
)

// walk reads a value, with the key that it is under, the key above, and the one at the top.
func (f *found) walk(d *json.Decoder, top, under, key string, depth int) (whole bool) {
	value, err := d.Token()
	of, nested := value.(json.Delim)
	if err != nil || depth > deepest {
		return false
	}
	if !nested {
		f.value(top, under, key, value)
		return !f.answers || !f.answered
	}
	for d.More() {
		above, name := under, key
		if of == '{' {
			next, _ := d.Token()
			above, name = key, ""
			name, _ = next.(string)
		}
		if !f.walk(d, cmp.Or(top, name), above, name, depth+1) {
			return false
		}
	}
	_, err = d.Token()
	return err == nil
}

var plain = strings.NewReplacer("_", "", "-", "")

func (f *found) value(top, under, key string, value any) {
	f.answered = f.answered || value != nil && slices.Contains(results, top)
	var text string
	switch v := value.(type) {
	case string:
		if text = v; v != "" && v[0] == '{' { // a gateway's, of what is behind it
			f.read([]byte(v), cmp.Or(top, "text"))
			return
		}
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		f.Whole = f.Whole || v && key == "global" // Discord's
		f.answered = f.answered || v && top == "ok"
	}
	if under == "headers" { // of the server behind OpenRouter
		f.headers.Set(key, text)
		return
	}
	key = plain.Replace(strings.ToLower(key))
	f.wait(key, text)
	f.code(key, text)
	if i := slices.Index(points[:], key); i >= 0 {
		f.points[i], _ = value.(float64)
	}
}

func (f *found) wait(key, text string) {
	says := wait.FindStringSubmatch(key)
	if _, _, ok := untilThen(text, clock{}); says == nil || !ok || text == "0" {
		return
	}
	f.headers.Set(map[bool]string{true: "Retry-After-Ms", false: "Retry-After"}[says[2] != ""], text)
	f.refuses = f.refuses || says[1] == "retry"
}

func (f *found) code(key, text string) {
	sentences := slices.Contains(texts, key)
	is := slices.Contains(codes, key) || sentences && !strings.Contains(text, " ")
	code := is && strings.Count(text, " ") < 5 && tooMany.MatchString(text) && !full.MatchString(text)
	words := (is || sentences) && sentence.MatchString(text)
	f.refuses = f.refuses || code || words
	f.NotRate = f.NotRate || code && concurrent.MatchString(text)
	f.crowd = f.crowd || words && concurrent.MatchString(text)
	f.Final = f.Final || (code || slices.Contains(named, key)) && daily.MatchString(text)
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
