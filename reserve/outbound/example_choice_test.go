package outbound_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// Two keys of one API, of 2 and 1 calls a minute: three calls go at once, each with the header of its key.
func ExampleNewUpstreams() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.URL.Path, r.Header.Get("Authorization"))
	}))
	defer server.Close()

	base := pace.Must(url.Parse(server.URL))
	member := func(key string, perMinute int) outbound.Upstream {
		return outbound.Upstream{
			Base:   base,
			Header: http.Header{"Authorization": {"Bearer " + key}},
			By:     pace.Must(window.New(perMinute, time.Minute)),
		}
	}
	transport := pace.Must(outbound.NewUpstreams(nil, []outbound.Upstream{member("first", 2), member("second", 1)}))
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}
	for range 4 {
		response, err := client.Get("http://any.example/items") // the upstream's address takes the place of scheme and host
		if err != nil {
			fmt.Println("the fourth would wait for a minute")
			return
		}
		response.Body.Close()
	}
	// Unordered output:
	// /items Bearer first
	// /items Bearer first
	// /items Bearer second
	// the fourth would wait for a minute
}

// Calls that people wait for go before those of a batch.
func ExampleWithClasses() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()

	limiter := pace.Must(window.New(50, time.Second))
	class := func(r *http.Request) (class, tenant string) { return fair.From(r.Context()) }
	transport := pace.Must(outbound.New(nil, limiter,
		outbound.WithClasses(class, fair.Class{Name: "people", Priority: 1}, fair.Class{Name: "batch"})))
	client := &http.Client{Transport: transport}

	r := pace.Must(http.NewRequest(http.MethodGet, server.URL, nil))
	response, err := client.Do(r.WithContext(fair.With(r.Context(), "people", "")))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	fmt.Println(response.StatusCode)
	// Output: 404
}

// What a transport knows of its limits, for a log or a page.
func ExampleTransport_Snapshot() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()

	transport := pace.Must(outbound.New(nil, pace.Must(window.New(50, time.Second))))
	response, err := (&http.Client{Transport: transport}).Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	response.Body.Close()
	for _, limit := range transport.Snapshot().Limits {
		fmt.Println(limit.Refused, "refused, stopped for", time.Until(limit.StoppedUntil).Round(time.Second))
	}
	// Output: 1 refused, stopped for 30s
}
