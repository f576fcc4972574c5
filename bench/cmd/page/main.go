// Command page shows package pacedebug's page with a program that stands still: a server has stopped one limit, and a
// batch waits behind people. With -out it writes the page into a file, of which a browser can take a picture:
//
//	go run ./cmd/page -out /tmp/page.html
//	chromium --headless --no-sandbox --hide-scrollbars --window-size=1240,320 \
//	  --screenshot=results/page.png file:///tmp/page.html
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/pacedebug"
)

func main() {
	out := flag.String("out", "", "write the page into this file and end; empty: serve it on localhost:6070")
	flag.Parse()
	page := pacedebug.New()
	if err := populate(page); err != nil {
		log.Fatal(err)
	}
	if *out == "" {
		fmt.Println("http://localhost:6070/debug/pace")
		http.Handle("/debug/pace", page)
		log.Fatal(http.ListenAndServe("localhost:6070", nil))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 35*time.Second)
	defer cancel()
	_ = page.Sample(ctx)
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest("GET", "/debug/pace", nil))
	if err := os.WriteFile(*out, w.Body.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

// populate starts callers of three limits, and shows these.
func populate(page *pacedebug.Page) error {
	limiter := pace.Must(pace.NewBursty(20, pace.WithBurst(0)))
	queue := pace.Must(fair.New(limiter, []fair.Class{{Name: "people", Priority: 1}, {Name: "batch"}}))
	go start(400, queue.Class("batch"))
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			go start(1, queue.Class("people"))
		}
	}()
	transport, err := searching()
	if err != nil {
		return err
	}
	for _, err := range []error{
		page.Limiter("crm", limiter), page.Queue("crm", queue), page.Transport("search", transport),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func start(callers int, by pace.Reserver) {
	for range callers {
		go func() { _, _ = pace.Acquire(context.Background(), by, 1) }()
	}
}

// searching returns a transport with 12 callers, whose server stops them for four minutes after the tenth second.
func searching() (*outbound.Transport, error) {
	begin := time.Now()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if time.Since(begin) > 10*time.Second {
			w.Header().Set("Retry-After", "240")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		fmt.Fprintln(w, "found nothing")
	}))
	transport, err := outbound.New(nil, nil, outbound.WithRetries(1), outbound.WithLimit(outbound.Limit{
		Name: "requests", Limiter: pace.Must(pace.NewBursty(10, pace.WithBurst(0))),
	}))
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport}
	for range 12 {
		go func() {
			for {
				response, err := client.Get(server.URL)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		}()
	}
	return transport, nil
}
