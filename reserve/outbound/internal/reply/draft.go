package reply

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// readDraft reads RateLimit-Policy and RateLimit, lists of RFC 9651 (draft-ietf-httpapi-ratelimit-headers-11), and
// drafts 3 to 7. It reports whether the server told what is left.
//
//	RateLimit-Policy: "default";q=100;w=60    100 requests in 60 s
//	RateLimit: "default";r=50;t=30            50 of them left, for 30 s
func readDraft(h http.Header, s *Reply) (read bool) {
	policies, fields := h["Ratelimit-Policy"], h["Ratelimit"]
	if size := len(strings.Join(policies, ",")) + len(strings.Join(fields, ",")); size == 0 || size > maxField {
		return false
	}
	others := readPolicies(policies, s)
	policyTold := s.Key.Name != ""
	for _, item := range items(fields) {
		policy, ok := name(item.Value)
		r, told := integer(item.Params, "r")
		if !ok || !told || others[policy] {
			continue
		}
		read = true
		if !policyTold {
			s.Key.add(policy)
		}
		if t, ok := integer(item.Params, "t"); ok {
			s.limit("").left(float64(r), times(float64(t), time.Second), false)
		} else {
			s.Empty = s.Empty || r == 0
		}
	}
	return readDraft7(fields, s) || read
}

func (k *Key) add(policy string) {
	if len(k.Name) < maxName {
		k.Name = strings.Trim(k.Name+","+cut(policy), ",")
	}
}

// readPolicies reads the allowed rates, and returns the names of policies that don't count requests.
func readPolicies(fields []string, s *Reply) (others map[string]bool) {
	others = map[string]bool{}
	for _, item := range items(fields) {
		quota, ok := integer(item.Params, "q")
		policy, named := name(item.Value)
		if n, old := item.Value.(int64); old && !ok { // drafts 3 to 7: 100;w=60
			quota, ok, named = n, n >= 0, true
		}
		if unit, told := item.Params.Get("qu"); named && told && unit != "requests" {
			others[policy] = true
			continue
		}
		seconds, windowed := integer(item.Params, "w")
		if !ok || !named || !windowed || seconds == 0 {
			continue
		}
		s.Key.add(policy)
		if window := times(float64(seconds), time.Second); window <= widest {
			s.limit("").allow(float64(quota) / window.Seconds())
		}
	}
	return others
}

// draft7 is RateLimit of draft 7: limit=20, remaining=19, reset=1.
var draft7 = regexp.MustCompile(`\bremaining=(\d+).*\breset=(\d+)`)

func readDraft7(fields []string, s *Reply) bool {
	says := draft7.FindStringSubmatch(strings.Join(fields, ","))
	if says == nil {
		return false
	}
	r, _ := number(says[1])
	t, _ := number(says[2])
	s.limit("").left(r, times(t, time.Second), false)
	return true
}

// items returns a list's items; none if the field is malformed, as RFC 9651 requires.
func items(fields []string) (items []httpsfv.Item) {
	members, err := httpsfv.UnmarshalList(fields)
	if err != nil {
		return nil
	}
	for _, m := range members {
		if item, ok := m.(httpsfv.Item); ok {
			items = append(items, item)
		}
	}
	return items
}

// name returns a policy's name: a String or, from some servers, a Token.
func name(value any) (string, bool) {
	if token, ok := value.(httpsfv.Token); ok {
		return string(token), true
	}
	text, ok := value.(string)
	return text, ok
}

func integer(p *httpsfv.Params, key string) (int64, bool) {
	v, _ := p.Get(key)
	n, ok := v.(int64)
	return n, ok && n >= 0
}
