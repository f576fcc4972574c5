package reply

import (
	"net/http"
	"time"

	"github.com/dunglas/httpsfv"
)

// readDraft reads RateLimit-Policy and RateLimit as draft-ietf-httpapi-ratelimit-headers-11
// has them, lists of RFC 9651:
//
//	RateLimit-Policy: "default";q=100;w=60    100 requests in 60 s
//	RateLimit: "default";r=50;t=30            50 of them left, for 30 s
//
// and as its drafts 3 to 7 had them. It reports whether the server said what is left (until draft
// 6, that was in fields of their own: see dialects).
func readDraft(h http.Header, s *Reply) (read bool) {
	if len(h["Ratelimit-Policy"]) == 0 && len(h["Ratelimit"]) == 0 {
		return false
	}
	policies, others := readPolicies(h["Ratelimit-Policy"])
	for _, p := range policies {
		s.Key.add(p.name)
		if p.window <= widest {
			s.limit("").allow(p.quota / p.window.Seconds())
		}
	}
	fields := h["Ratelimit"]
	for _, item := range items(fields) {
		policy, ok := name(item.Value)
		if !ok || others[policy] {
			continue
		}
		r, ok := integer(item.Params, "r")
		if !ok {
			continue
		}
		read = true
		if len(policies) == 0 {
			s.Key.add(policy)
		}
		if t, ok := integer(item.Params, "t"); ok {
			s.limit("").left(float64(r), times(float64(t), time.Second), false)
		}
	}
	return readDraft7(fields, s) || read
}

// add adds a policy's name: all policies of a response hold for the call together.
func (k *Key) add(policy string) {
	switch {
	case k.Name == "":
		k.Name = cut(policy)
	case policy != "" && len(k.Name) < maxName:
		k.Name += "," + cut(policy)
	}
}

// A policy is a quota of requests in a window.
type policy struct {
	name   string // "": it has none
	quota  float64
	window time.Duration
}

// readPolicies returns the policies that say how many requests are allowed in how long, and
// the names of others, that count bytes or the like.
func readPolicies(fields []string) (policies []policy, others map[string]bool) {
	others = map[string]bool{}
	for _, item := range items(fields) {
		q, ok := integer(item.Params, "q")
		policyName, named := name(item.Value)
		if n, old := item.Value.(int64); old && !ok { // drafts 3 to 7: 100;w=60
			q, ok = n, n >= 0
		} else if !named {
			continue
		}
		if unit, told := item.Params.Get("qu"); told && unit != "requests" {
			others[policyName] = true
			continue
		}
		w, windowed := integer(item.Params, "w")
		if !ok || !windowed || w == 0 {
			continue
		}
		policies = append(policies, policy{name: policyName, quota: float64(q), window: times(float64(w), time.Second)})
	}
	return policies, others
}

// readDraft7 reads RateLimit as draft 7 had it: limit=20, remaining=19, reset=1.
func readDraft7(fields []string, s *Reply) bool {
	if size(fields) > maxField {
		return false
	}
	d, err := httpsfv.UnmarshalDictionary(fields)
	if err != nil {
		return false
	}
	var r, t int64
	for _, m := range []struct {
		name  string
		value *int64
	}{{"remaining", &r}, {"reset", &t}} {
		member, _ := d.Get(m.name)
		item, _ := member.(httpsfv.Item)
		n, ok := item.Value.(int64)
		if !ok || n < 0 {
			return false
		}
		*m.value = n
	}
	s.limit("").left(float64(r), times(float64(t), time.Second), false)
	return true
}

// items returns the items of a list: of none, if the field is malformed, as RFC 9651
// wants it.
func items(fields []string) (items []httpsfv.Item) {
	if len(fields) == 0 || size(fields) > maxField {
		return nil
	}
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

func size(fields []string) (n int) {
	for _, f := range fields {
		n += len(f) + 1
	}
	return n
}

// name returns a policy's name. The draft wants a String; a Token is what some
// servers send, and what a later draft may allow.
func name(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case httpsfv.Token:
		return string(v), true
	default:
		return "", false
	}
}

// integer returns a parameter that is an integer and not negative.
func integer(p *httpsfv.Params, key string) (int64, bool) {
	v, _ := p.Get(key)
	n, ok := v.(int64)
	return n, ok && n >= 0
}
