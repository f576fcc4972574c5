package inbound

import (
	"net/http"
	"strings"
)

// wantsText reports whether a client would rather have text/plain than application/problem+json, by
// its Accept header (RFC 9110, section 12.5.1). If it has no preference it gets the problem. A
// client that names another type of text, as browsers do, can show plain text as well; one that
// names another type of JSON can read a problem.
func wantsText(r *http.Request) bool {
	text, json := unnamed, unnamed
	for _, line := range r.Header["Accept"] {
		for more := true; more; {
			var element string
			element, line, more = cutUnquoted(line, ',')
			name, q, ok := mediaRange(element)
			switch {
			case !ok:
			case name == "*/*":
				text.any, json.any = q, q
			case name == "text/plain":
				text.exact = q
			case name == "text/*":
				text.family = q
			case strings.HasPrefix(name, "text/"):
				text.related = max(text.related, q)
			case name == "application/problem+json":
				json.exact = q
			case name == "application/json":
				json.same = q
			case name == "application/*":
				json.family = q
			case strings.HasSuffix(name, "+json"):
				json.related = max(json.related, q)
			}
		}
	}
	return text.weight() > json.weight()
}

// weights are the weights that an Accept header gives to one type, to another name for it, to its
// family, to related types, and to any type. They are in thousandths; -1 stands for none.
type weights struct{ exact, same, family, related, any int }

var unnamed = weights{-1, -1, -1, -1, -1}

// weight returns the weight of the type itself: that of the most specific name. A related type only
// speaks for it.
func (w weights) weight() int {
	switch {
	case w.exact >= 0:
		return w.exact
	case w.same >= 0:
		return w.same
	case w.family >= 0:
		return w.family
	}
	return max(w.related, w.any, 0)
}

// mediaRange reads one element of an Accept header: its name in lower case, and its weight in
// thousandths.
func mediaRange(element string) (name string, q int, ok bool) {
	name, rest, more := cutUnquoted(element, ';')
	name, q, ok = strings.ToLower(strings.TrimSpace(name)), 1000, true
	for more {
		var parameter string
		parameter, rest, more = cutUnquoted(rest, ';')
		if key, value, _ := strings.Cut(parameter, "="); strings.EqualFold(strings.TrimSpace(key), "q") {
			q, ok = thousandths(strings.TrimSpace(value))
			break // parameters after the weight belong to it
		}
	}
	return name, q, ok
}

// thousandths reads a weight: 0 to 1, with at most three digits after the point.
func thousandths(s string) (q int, ok bool) {
	const longest = len("0.999")
	if s == "" || len(s) > longest || len(s) > 1 && s[1] != '.' {
		return 0, false
	}
	unit := 1000
	for i := range len(s) {
		if i == 1 {
			continue // the point
		}
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		q += int(s[i]-'0') * unit
		unit /= 10
	}
	return q, q <= 1000
}

// cutUnquoted is strings.Cut around the first separator that is not in a quoted string.
func cutUnquoted(s string, separator byte) (before, after string, found bool) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == separator && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}
