package apis_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/outbound/apis"
	"github.com/nextfree/pace/reserve/window"
)

// A server answers at once.
type server func(r *http.Request) (status int, header http.Header, body string)

func (s server) RoundTrip(r *http.Request) (*http.Response, error) {
	status, header, body := s(r)
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func ok(*http.Request) (int, http.Header, string) { return http.StatusOK, nil, "" }

func get(t *testing.T, url string, header ...string) *http.Request {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// took makes calls at once, and returns how long they took.
func took(t *testing.T, tr http.RoundTripper, requests ...*http.Request) time.Duration {
	begin := time.Now()
	var all sync.WaitGroup
	for _, r := range requests {
		all.Go(func() {
			resp, err := tr.RoundTrip(r)
			if err == nil {
				resp.Body.Close()
			}
		})
	}
	all.Wait()
	return time.Since(begin)
}

func times(n int, r func(i int) *http.Request) (all []*http.Request) {
	for i := range n {
		all = append(all, r(i))
	}
	return all
}

func transport(t *testing.T, s server, opts ...outbound.Option) *outbound.Transport {
	tr, err := outbound.New(s, nil, opts...)
	require.NoError(t, err)
	return tr
}

const base = "https://api.airtable.com/v0/appA/Table"

func TestHosts(t *testing.T) {
	for url, paced := range map[string]bool{
		base:                                     true,
		"https://API.Airtable.com/v0/appA/T":     true,
		"https://api.airtable.com.:443/v0/a/T":   true,
		"http://eu.api.airtable.com/v0/appA/T":   true,
		"https://api.airtable.com.evil.com/v0/a": false,
		"https://evil-api.airtable.com/v0/appA":  false,
		"https://evilapi.airtable.com/v0/appA":   false,
		"https://airtable.com/v0/appA/Table":     false,
		"https://api-airtable.com/v0/appA/Table": false,
		"https://evil.com/api.airtable.com":      false,
		"https://api.airtable.com@evil.com/v0/a": false,
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := transport(t, ok, apis.Known())
			d := took(t, tr, times(11, func(int) *http.Request { return get(t, url) })...)
			require.Equal(t, paced, d >= 2*time.Second, "%s: %v", url, d)
		})
	}
}

// Two credentials share no limit, and none is held in clear.
func TestCredentials(t *testing.T) {
	for name, of := range map[string]func(i int) *http.Request{
		"bearer": func(i int) *http.Request { return get(t, base, "Authorization", fmt.Sprintf("Bearer secret-of-%d", i)) },
		"basic": func(i int) *http.Request {
			r := get(t, base)
			r.SetBasicAuth("user", fmt.Sprintf("secret-of-%d", i))
			return r
		},
		"parameter": func(i int) *http.Request { return get(t, fmt.Sprintf("%s?api_key=secret-of-%d", base, i)) },
		"address": func(i int) *http.Request {
			return get(t, fmt.Sprintf("https://user:secret-of-%d@api.airtable.com/v0/appA/T", i))
		},
		"shop": func(i int) *http.Request {
			return get(t, "https://a.myshopify.com/admin/api/2026-10/shop.json", "X-Shopify-Access-Token", fmt.Sprintf("secret-of-%d", i))
		},
		"signed": func(i int) *http.Request {
			return get(t, base, "Authorization", fmt.Sprintf(`OAuth oauth_token="secret-of-%d", oauth_signature="abc"`, i))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := transport(t, ok, apis.Known(), apis.Shopify(2, 5))
				both := append(times(5, func(int) *http.Request { return of(1) }), times(5, func(int) *http.Request { return of(2) })...)
				require.Less(t, took(t, tr, both...), 100*time.Millisecond)
				require.GreaterOrEqual(t, took(t, tr, of(1)), 400*time.Millisecond)
				for _, l := range tr.Snapshot().Limits {
					require.NotContains(t, l.Key, "secret")
				}
			})
		})
	}
}

// A refresh of a signature is no other credential.
func TestSignatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := transport(t, ok, apis.Known())
		d := took(t, tr, times(11, func(i int) *http.Request {
			return get(t, base, "Authorization", fmt.Sprintf(`OAuth oauth_token="a", oauth_signature="%d"`, i))
		})...)
		require.GreaterOrEqual(t, d, 2*time.Second)
	})
}

// A stop lies on the credential that was refused, on the API that refused it, and on no limit of the caller's.
func TestStops(t *testing.T) {
	refuses := func(r *http.Request) (int, http.Header, string) {
		if r.Header.Get("Authorization") == "Bearer bad" {
			return http.StatusTooManyRequests, http.Header{"Retry-After": {"60"}}, ""
		}
		return http.StatusOK, nil, ""
	}
	synctest.Test(t, func(t *testing.T) {
		own := reserve.Must(pace.NewBursty(1000))
		tr, err := outbound.New(server(refuses), own, apis.Known())
		require.NoError(t, err)
		took(t, tr, get(t, "https://api.notion.com/v1/pages", "Authorization", "Bearer bad"))
		require.Less(t, took(t, tr, get(t, "https://api.notion.com/v1/pages", "Authorization", "Bearer good")), time.Second)
		require.Less(t, took(t, tr, get(t, base, "Authorization", "Bearer bad2")), time.Second)
		require.Less(t, took(t, tr, get(t, "https://other.example/", "Authorization", "Bearer bad3")), time.Second)
		require.Equal(t, 60*time.Second, took(t, tr, get(t, "https://api.notion.com/v1/users", "Authorization", "Bearer bad")).Round(2*time.Second))
	})
}

// Requests to other hosts are as with New(nil, nil): each host stops by itself.
func TestOtherHosts(t *testing.T) {
	refuses := func(r *http.Request) (int, http.Header, string) {
		if r.URL.Host == "a.example" {
			return http.StatusTooManyRequests, http.Header{"Retry-After": {"10"}}, ""
		}
		return http.StatusOK, nil, ""
	}
	for name, opts := range map[string][]outbound.Option{"none": nil, "known": {apis.Known()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := transport(t, refuses, opts...)
				took(t, tr, get(t, "https://a.example/"))
				require.Zero(t, took(t, tr, times(50, func(int) *http.Request { return get(t, "https://b.example/") })...))
				require.Equal(t, 10*time.Second, took(t, tr, get(t, "https://a.example/x")))
			})
		})
	}
}

// A redirect to another host leaves the limits.
func TestRedirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := transport(t, func(r *http.Request) (int, http.Header, string) {
			if r.URL.Path == "/file" {
				return http.StatusFound, http.Header{"Location": {"https://cdn.example/done"}}, ""
			}
			return http.StatusOK, nil, ""
		}, apis.SEC())
		begin := time.Now()
		for range 10 {
			resp, err := (&http.Client{Transport: tr}).Get("https://www.sec.gov/file")
			require.NoError(t, err)
			resp.Body.Close()
		}
		require.Zero(t, time.Since(begin)) // ten of sec.gov, and ten of another host
	})
}

// The server's word holds before a preset's.
func TestServerBeatsPreset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		tr := transport(t, func(*http.Request) (int, http.Header, string) {
			n++
			return http.StatusOK, http.Header{"Ratelimit-Limit": {"700"}, "Ratelimit-Remaining": {fmt.Sprint(max(0, 3-n))}, "Ratelimit-Reset": {"40"}}, ""
		}, apis.Zendesk(400))
		for range 3 {
			took(t, tr, get(t, "https://site.zendesk.com/api/v2/tickets/1.json"))
		}
		require.GreaterOrEqual(t, took(t, tr, get(t, "https://site.zendesk.com/api/v2/tickets/1.json")), 39*time.Second)
	})
	synctest.Test(t, func(t *testing.T) { // of 15,000 an hour, 5,000 are not the limit
		left := 15000
		var mu sync.Mutex
		tr := transport(t, func(*http.Request) (int, http.Header, string) {
			mu.Lock()
			defer mu.Unlock()
			left--
			return http.StatusOK, http.Header{"X-Ratelimit-Resource": {"core"}, "X-Ratelimit-Limit": {"15000"},
				"X-Ratelimit-Remaining": {fmt.Sprint(left)}, "X-Ratelimit-Reset": {fmt.Sprint(time.Now().Add(time.Hour).Unix())}}, ""
		}, apis.GitHub())
		d := took(t, tr, times(6000, func(int) *http.Request { return get(t, "https://api.github.com/user") })...)
		require.Less(t, d, 7*time.Minute) // 900 a minute
	})
}

func TestComposes(t *testing.T) {
	class := func(r *http.Request) (string, string) { return "batch", "" }
	synctest.Test(t, func(t *testing.T) {
		hosts := keyed.New(func(string) (*reserve.Policy, error) { return pace.Bursty(1000) })
		opts := []outbound.Option{
			apis.Known(), outbound.WithRetries(3), outbound.WithMaxInFlight(8), outbound.Adaptive(),
			outbound.WithClasses(class, fair.Class{Name: "now", Weight: 2}, fair.Class{Name: "batch", Weight: 1}),
			outbound.WithLimit(outbound.Limit{Name: "own", Limiter: reserve.Must(window.New(4, time.Second))}),
			outbound.PerKey(outbound.Host, hosts.For),
		}
		tr := transport(t, ok, opts...)
		d := took(t, tr, times(9, func(int) *http.Request { return get(t, base, "Authorization", "Bearer a") })...)
		require.GreaterOrEqual(t, d, 2*time.Second) // the own limit, on top
	})
}

func TestBadNumbers(t *testing.T) {
	for name, opt := range map[string]outbound.Option{
		"perMinute of Zendesk": apis.Zendesk(0), "perSecond of Shopify": apis.Shopify(0, 40), "bucket of Shopify": apis.Shopify(2, -1),
		"calls of HubSpot": apis.HubSpot(-1, time.Second), "in of HubSpot": apis.HubSpot(100, 0), "concurrent of Twilio": apis.Twilio(0),
		"longCalls of Salesforce": apis.Salesforce(1000, 0), "pointsPerHour of Jira": apis.Jira(-5), "concurrent of Okta": apis.Okta(600, 0),
		"perMinute of Google": apis.Google(0), "pointsPerSecond of Shopify GraphQL": apis.ShopifyGraphQL(-50, 1000),
	} {
		_, err := outbound.New(nil, nil, opt)
		var bad *reserve.ValueError
		require.ErrorAs(t, err, &bad, name)
		require.ErrorContains(t, err, "apis: "+name)
	}
}

// A transport's options can be used again, and transports share nothing.
func TestTransportsShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := apis.Known()
		for range 2 {
			tr := transport(t, ok, known)
			require.Zero(t, took(t, tr, times(5, func(int) *http.Request { return get(t, base) })...))
		}
	})
}
