package apis

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"

	"github.com/nextfree/pace/reserve/outbound"
)

// field returns a function that returns a field of a request's body, in JSON or a form, or a parameter of its URL.
func field(name string) func(*http.Request) string {
	return func(r *http.Request) string {
		body := outbound.Body(r)
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
			if form, err := url.ParseQuery(string(body)); err == nil && form.Has(name) {
				return form.Get(name)
			}
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(body, &fields) == nil && fields[name] != nil {
			return string(fields[name])
		}
		return r.URL.Query().Get(name)
	}
}
