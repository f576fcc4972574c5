// Command shared makes 300 calls to a language model against limits that many machines share on Redis, and against
// the same limits in this process: how much of the flow that is due is used. It starts a redis-server of its own, and
// asks it directly and over a connection that takes 100 ms.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/llm"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

const (
	perMinute = 60_000 // tokens, and requests
	calls     = 300
	input     = 20 // tokens of a call
	output    = 40
	address   = "127.0.0.1:7391"
)

// due is how long the calls take at nine tenths of the limit, behind a tenth that is stored.
const due = (calls*(input+output) - 0.1*perMinute) / (0.9 * perMinute / 60)

func policy() *reserve.Policy {
	return reserve.Must(pace.TokenBucket(reserve.Per(0.9*perMinute, time.Minute), 0.1*perMinute))
}

// A model answers each call after 300 ms.
type model struct {
	mu   sync.Mutex
	last time.Time // when a call came
}

func (m *model) RoundTrip(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body)
	r.Body.Close()
	m.mu.Lock()
	m.last = time.Now()
	m.mu.Unlock()
	time.Sleep(300 * time.Millisecond)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(
		fmt.Sprintf(`{"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, input, output)))}, nil
}

// run makes all calls at once, each with a max_tokens of most, and prints how long they take.
func run(name string, most int, limiter func(limit string) reserve.Reserver) {
	limiters := map[string]reserve.Reserver{"requests": limiter("requests"), "tokens": limiter("tokens")}
	base := &model{}
	transport, err := llm.New(base, llm.OpenAI(), llm.Limits{}, llm.WithLimiters(func(limit string, _ llm.Key) reserve.Reserver {
		return limiters[limit]
	}))
	if err != nil {
		log.Fatal(err)
	}
	body := fmt.Sprintf(`{"model":"m","max_tokens":%d,"messages":[{"content":"%s"}]}`, most, strings.Repeat("abc ", input-2))
	begin, failed := time.Now(), make(chan error, calls)
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://a/v1/chat/completions", strings.NewReader(body))
			if err != nil {
				log.Fatal(err)
			}
			response, err := transport.RoundTrip(r)
			if err != nil {
				failed <- err
				return
			}
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
		})
	}
	all.Wait()
	took := base.last.Sub(begin).Seconds()
	fmt.Printf("| %-22s | %10d | %5.1f s | %4.0f %% | %6d |\n", name, most, took, 100*due/took, len(failed))
}

// slow returns an address that leads to Redis in half of d each way.
func slow(d time.Duration) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", address)
			if err != nil {
				from.Close()
				continue
			}
			go delay(to, from, d/2)
			go delay(from, to, d/2)
		}
	}()
	return listener.Addr().String(), nil
}

// delay passes on what comes, each piece later.
func delay(to, from net.Conn, by time.Duration) {
	type piece struct {
		at   time.Time
		text []byte
	}
	pieces := make(chan piece, 1<<16)
	go func() {
		for p := range pieces {
			time.Sleep(time.Until(p.at))
			to.Write(p.text)
		}
		to.Close()
	}()
	for {
		text := make([]byte, 4096)
		n, err := from.Read(text)
		pieces <- piece{time.Now().Add(by), text[:n]}
		if err != nil {
			close(pieces)
			return
		}
	}
}

func main() {
	server := exec.Command("redis-server", "--port", "7391", "--save", "", "--appendonly", "no")
	if err := server.Start(); err != nil {
		log.Fatal(err)
	}
	defer server.Process.Kill()
	for range 100 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := compare(); err != nil {
		log.Print(err)
	}
}

func compare() error {
	far, err := slow(100 * time.Millisecond)
	if err != nil {
		return err
	}
	fmt.Println("| limits                 | max_tokens |    time | of due | failed |\n|------------------------|-----------:|--------:|-------:|-------:|")
	number := 0
	for _, most := range []int{output, 10 * output} {
		run("in this process", most, func(string) reserve.Reserver { return policy().Limiter() })
		for _, on := range []struct{ name, address string }{{"on Redis", address}, {"on Redis, 100 ms away", far}} {
			client := redis.NewClient(&redis.Options{Addr: on.address, ContextTimeoutEnabled: true})
			var failed error
			run(on.name, most, func(limit string) reserve.Reserver {
				number++
				l, err := shared.New(goredis.Client(client), fmt.Sprint(limit, number), policy(),
					shared.WithLease(time.Second), shared.WithTimeout(5*time.Second))
				failed = errors.Join(failed, err)
				return l
			})
			if client.Close(); failed != nil {
				return failed
			}
		}
	}
	return nil
}
