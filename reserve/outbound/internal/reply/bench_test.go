package reply

import (
	"net/http"
	"strings"
	"testing"
)

// What a body costs: an answer of GraphQL's, of which only the begin is read, and a refusal in words.
func BenchmarkBodies(b *testing.B) {
	for name, body := range map[string]string{
		"answer":  `{"data":{"items":[` + strings.Repeat(`{"id":"1234567890","title":"A product","price":"12.30"},`, 1000) + `{}]}}`,
		"refusal": strings.Repeat("<p>Slow down. Please wait.</p>", 2000),
	} {
		b.Run(name, func(b *testing.B) {
			r := &http.Response{StatusCode: map[bool]int{true: 200, false: 429}[name == "answer"], Header: http.Header{}}
			for b.Loop() {
				readBody(r, []byte(body))
			}
		})
	}
}
