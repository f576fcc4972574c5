package pacetest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/pacetest"
)

// A server that allows 2 calls in any second, as GitHub says it.
func ExampleNew() {
	server := reserve.Must(pacetest.New(pacetest.Window(2, time.Second), pacetest.WithDialect(pacetest.GitHub)))
	listening := httptest.NewServer(server)
	defer listening.Close()
	for range 3 {
		r, err := http.Get(listening.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		r.Body.Close()
		fmt.Println(r.StatusCode, r.Header.Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 200 1
	// 200 0
	// 403 0
}

// A test of a program's client: 200 calls by 20 goroutines keep to 50 a second. It takes 3 s of
// simulated time, and milliseconds of real time.
func ExampleNeverMoreThan() {
	inTest(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server := reserve.Must(pacetest.New(pacetest.Window(50, time.Second)))
			client := pacetest.Client(t, server)
			limiter := reserve.Must(pace.NewBursty(50, pace.WithBurst(0)))
			client.Transport = reserve.Must(outbound.New(client.Transport, limiter))
			done := make(chan error)
			for range 20 {
				go func() {
					for range 10 {
						r, err := client.Get("http://api.example.com")
						if err == nil {
							err = r.Body.Close()
						}
						done <- err
					}
				}()
			}
			for range 200 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			pacetest.NeverMoreThan(t, 50, time.Second, server.Accepted())
			if n := len(server.Refused()); n > 0 {
				t.Errorf("%d calls were refused", n)
			}
		})
	})
}

// inTest stands for a test.
var inTest = func(func(t *testing.T)) {}

// The example is run, too.
func TestExample(t *testing.T) {
	inTest = func(test func(t *testing.T)) { test(t) }
	ExampleNeverMoreThan()
}

// The second call is refused for a minute, whatever the limit says.
func ExampleServer_Script() {
	server := reserve.Must(pacetest.New(pacetest.Unlimited()))
	server.Script(pacetest.Answer{}, pacetest.Answer{Refuse: true, After: time.Minute})
	listening := httptest.NewServer(server)
	defer listening.Close()
	for range 3 {
		r, err := http.Get(listening.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		r.Body.Close()
		fmt.Println(r.StatusCode, r.Header["Retry-After"])
	}
	// Output:
	// 200 []
	// 429 [60]
	// 200 []
}
