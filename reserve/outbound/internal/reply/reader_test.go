package reply

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The first sign of a host counts, whether it is for that host, for one above it, or for any.
func TestSignOfHost(t *testing.T) {
	sign := func(host string, after time.Duration) Sign {
		return Sign{Status: 200, Host: host, Header: "x-sign", After: after}
	}
	for _, c := range []struct {
		host  string
		signs []Sign
		want  time.Duration // 0: no refusal
	}{
		{"b.a.test", []Sign{sign("b.a.test", 1), sign("a.test", 2), sign("", 3)}, 1},
		{"b.a.test", []Sign{sign("a.test", 1), sign("b.a.test", 2), sign("", 3)}, 1},
		{"b.a.test", []Sign{sign("", 1), sign("b.a.test", 2)}, 1},
		{"c.a.test", []Sign{sign("b.a.test", 1), sign("a.test", 2), sign("", 3)}, 2},
		{"a.test", []Sign{sign("b.a.test", 1), sign("", 3)}, 3},
		{"xa.test", []Sign{sign("a.test", 1), sign("test", 2)}, 2},
		{"other.example", []Sign{sign("a.test", 1), sign("test", 2)}, 0},
	} {
		r := &http.Response{
			StatusCode: 200, Header: http.Header{"X-Sign": {"yes"}}, Body: http.NoBody,
			Request: &http.Request{URL: &url.URL{Scheme: "https", Host: c.host + ":443"}},
		}
		s := NewReader([]Dialect{{Signs: c.signs}}).Read(r, received)
		require.Equal(t, c.want, s.Penalty, c)
		require.Equal(t, c.want > 0, s.Refused, c)
	}
}

// BenchmarkRead is a response that says nothing of limits.
func BenchmarkRead(b *testing.B) {
	r := &http.Response{StatusCode: 200, Header: http.Header{
		"Content-Type": {"application/json"}, "Date": {"Sat, 21 Nov 2026 12:00:00 GMT"}, "Server": {"a"}, "Vary": {"Origin"},
		"Content-Length": {"100"}, "Cache-Control": {"no-store"}, "Etag": {"x"}, "Strict-Transport-Security": {"max-age=1"},
	}, Request: &http.Request{URL: &url.URL{Scheme: "https", Host: "api.example.com"}}}
	for b.Loop() {
		Read(r, received)
	}
}
