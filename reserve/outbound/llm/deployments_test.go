package llm

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/pool"
)

func urlOf(s string) *url.URL { return reserve.Must(url.Parse(s)) }

// hosts is a base transport with a server for each host.
type hosts map[string]http.RoundTripper

func (h hosts) RoundTrip(r *http.Request) (*http.Response, error) { return h[r.URL.Host].RoundTrip(r) }

// three are deployments of 10, 5 and 1 parts of a quota, with their servers.
func three(q quota, token time.Duration) (list []Deployment, servers hosts) {
	servers = hosts{}
	for i, part := range []int{10, 5, 1} {
		host := string(rune('a'+i)) + ".example"
		one := quota{q.requests * part / 16, q.tokens * part / 16}
		servers[host] = &provider{quota: one, token: token, holds: true, random: rand.New(rand.NewPCG(1, 2))}
		list = append(list, Deployment{
			Provider: OpenAI(), Base: urlOf("https://" + host + "/v1"),
			Limits: Limits{RequestsPerMinute: one.requests, TokensPerMinute: one.tokens},
		})
	}
	return list, servers
}

// Three deployments take the real trace as fast as one with the sum of their limits, and none refuses a call.
func TestDeploymentsOnTheRealTrace(t *testing.T) {
	calls, q := realTrace(t)[:1500], quota{320, 640_000}
	if long() {
		calls, q = realTrace(t), quota{1600, 3_200_000}
	}
	for i := range calls {
		calls[i].at = calls[i].at * 20 / 35
	}
	best := optimum(calls, q)
	synctest.Test(t, func(t *testing.T) {
		list, servers := three(q, 20*time.Millisecond)
		transport, err := NewDeployments(servers, list)
		require.NoError(t, err)
		begin := time.Now()
		var all sync.WaitGroup
		for _, c := range calls {
			time.Sleep(max(1, c.at-time.Since(begin)))
			all.Go(func() {
				body, _ := text(c)
				status, err := post(transport, api, body, "X-Input: "+strconv.Itoa(c.input), "X-Output: "+strconv.Itoa(c.output), "X-Max: "+strconv.Itoa(c.output))
				require.NoError(t, err)
				require.Equal(t, 200, status)
			})
		}
		all.Wait()
		var took time.Duration
		refused, arrived := 0, []int{}
		for _, host := range []string{"a.example", "b.example", "c.example"} {
			p := servers[host].(*provider)
			took = max(took, p.last.Sub(begin))
			refused += len(p.refused)
			arrived = append(arrived, p.arrived)
		}
		share := 100 * best.Seconds() / took.Seconds()
		t.Logf("%.2f min, at best %.2f: %.2f %% of the sum, %d refused, %v", took.Minutes(), best.Minutes(), share, refused, arrived)
		require.GreaterOrEqual(t, share, 98.)
		require.Zero(t, refused)
	})
}

// seen is what a deployment got.
type seen struct{ address, credential, body string }

// two are a deployment at OpenAI, and one at Azure with a name of its own for the model.
func two() []Deployment {
	return []Deployment{
		{Provider: OpenAI(), Base: urlOf("https://api.openai.com/v1"), Header: http.Header{"Authorization": {"Bearer o"}},
			Limits: Limits{RequestsPerMinute: 10, TokensPerMinute: 1000}},
		{Provider: AzureOpenAI(), Base: urlOf("https://x.azure.com/openai/deployments/swe?api-version=2"), Header: http.Header{"api-key": {"z"}},
			Models: map[string]string{"gpt-5": "swe"}, Limits: Limits{RequestsPerMinute: 600, TokensPerMinute: 1000}},
	}
}

// What each deployment gets: its own address, name of the model and credential, and no other's.
func TestDeploymentRequests(t *testing.T) {
	const body = `{"stream":false, "model" : "gpt-5","messages":[{"content":"{\"model\":1}"}],"max_tokens":5}`
	for _, c := range []struct{ address, body, openai, azure, renamed string }{
		{"https://any/v1/chat/completions", body, "https://api.openai.com/v1/chat/completions",
			"https://x.azure.com/openai/deployments/swe/chat/completions?api-version=2", strings.Replace(body, `"gpt-5"`, `"swe"`, 1)},
		{"https://any/openai/deployments/gpt-5/embeddings?api-version=1&x=2", `{"input":"a"}`, "https://api.openai.com/v1/embeddings?api-version=1&x=2",
			"https://x.azure.com/openai/deployments/swe/embeddings?api-version=2&x=2", `{"input":"a"}`},
		{"https://any/v1beta/models/gpt-5:generateContent?key=mine", `{"contents":[]}`, "https://api.openai.com/v1/models/gpt-5:generateContent",
			"https://x.azure.com/openai/deployments/swe/models/swe:generateContent?api-version=2", `{"contents":[]}`},
	} {
		var got []seen
		refuse := 1
		transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) {
			text, _ := io.ReadAll(r.Body)
			require.Equal(t, int64(len(text)), r.ContentLength)
			got = append(got, seen{r.URL.String(), r.Header.Get("Authorization") + r.Header.Get("Api-Key") + r.Header.Get("X-Api-Key"), string(text)})
			require.Empty(t, r.Host)
			if refuse--; refuse >= 0 {
				return says(429, "{}", "Retry-After: 60", "Set-Cookie: a=b"), nil
			}
			return says(200, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`, "Set-Cookie: a=b"), nil
		}), two())
		require.NoError(t, err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.address, strings.NewReader(c.body))
		require.NoError(t, err)
		r.Header = http.Header{"Authorization": {"Bearer mine"}, "X-Api-Key": {"mine"}, "Content-Type": {doc}}
		response, err := transport.RoundTrip(r)
		require.NoError(t, err)
		require.Equal(t, 200, response.StatusCode)
		require.Empty(t, response.Header.Get("Set-Cookie"))
		require.Same(t, r, response.Request)
		response.Body.Close()
		require.Equal(t, []seen{{c.openai, "Bearer o", c.body}, {c.azure, "z", c.renamed}}, got)
		require.Equal(t, "Bearer mine", r.Header.Get("Authorization"), "the request is not changed")
		transport.requireOver(t)
	}
}

// requireOver asserts that no call holds a deployment, or a place of one.
func (d *Deployments) requireOver(t *testing.T) {
	t.Helper()
	for _, m := range d.members {
		m.Transport.requireOver(t)
	}
	for _, l := range d.paced.Snapshot().Limits {
		require.Zero(t, l.Waiting+l.InFlight)
	}
}

// A deployment that refuses is left alone for as long as it says. No call waits for it, and nothing is lost.
func TestDeploymentRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		begin := time.Now()
		counts, refused := map[string]int{}, 0
		bodies := map[string]bool{}
		list := []Deployment{}
		for _, host := range []string{"a", "b", "c"} {
			list = append(list, Deployment{Provider: OpenAI(), Base: urlOf("https://" + host + "/v1"), Limits: Limits{RequestsPerMinute: 60}})
		}
		transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			if r.URL.Host == "b" && time.Since(begin) < 2*time.Minute {
				refused++
				return says(429, "{}", "Retry-After: 120"), nil
			}
			bodies[string(body)] = true
			counts[r.URL.Host]++
			return used(1, 1), nil
		}), list)
		require.NoError(t, err)
		var all sync.WaitGroup
		for i := range 300 {
			time.Sleep(time.Nanosecond)
			all.Go(func() {
				status, err := post(transport, api, fmt.Sprintf(`{"model":"m","n":%d}`, i))
				require.NoError(t, err)
				require.Equal(t, 200, status)
			})
		}
		all.Wait()
		require.Len(t, bodies, 300)
		require.Equal(t, 1, refused)
		require.LessOrEqual(t, time.Since(begin), 2*time.Minute+2*time.Second, "%v", counts)
		transport.requireOver(t)
	})
}

// If all refuse, the last refusal is the answer; what can't be sent again is sent once.
func TestAllDeploymentsRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) {
			n++
			io.Copy(io.Discard, r.Body)
			return says(429, r.URL.Host, "Retry-After: 30"), nil
		}), two(), AnswerRefusals())
		require.NoError(t, err)
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, api, strings.NewReader(`{"model":"gpt-5"}`))
		response, err := transport.RoundTrip(r)
		require.NoError(t, err)
		text, _ := io.ReadAll(response.Body)
		require.Equal(t, "x.azure.com", string(text))
		response.Body.Close()
		require.Equal(t, 2, n)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body, _ = r.GetBody()
		begin := time.Now()
		response, err = transport.RoundTrip(r)
		require.NoError(t, err)
		require.Equal(t, 429, response.StatusCode)
		require.Equal(t, "false", response.Header.Get("X-Should-Retry"))
		require.Zero(t, time.Since(begin), "it is known at once")
		require.Equal(t, 2, n)
		time.Sleep(time.Minute)
		long, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, api,
			io.MultiReader(strings.NewReader(`{"messages":[{"content":"`), strings.NewReader(strings.Repeat("a", maxBody)), strings.NewReader(`"}]}`)))
		response, err = transport.RoundTrip(long)
		require.NoError(t, err)
		require.Equal(t, 429, response.StatusCode)
		require.Equal(t, 3, n)
		response.Body.Close()
		transport.requireOver(t)
	})
}

// A model that only one serves; one that none serves; a call larger than one's limit; and one that asks no model.
func TestDeploymentsOfAModel(t *testing.T) {
	list := two()
	list[0].Models = map[string]string{"mini": "mini"}
	list[1].Limits.TokensPerMinute = 100_000
	var got []string
	transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) {
		got = append(got, r.Method+" "+r.URL.Host)
		return used(1, 1), nil
	}), list, RefuseTooLarge())
	require.NoError(t, err)
	for _, c := range []struct{ body, host string }{
		{`{"model":"mini"}`, "POST api.openai.com"}, {`{"model":"gpt-5"}`, "POST x.azure.com"}, {chatBody(4000, ""), ""},
		{strings.Replace(chatBody(4000, ""), `"m"`, `"gpt-5"`, 1), "POST x.azure.com"},
	} {
		got = nil
		_, err := post(transport, api, c.body)
		if c.host == "" {
			var value *reserve.ValueError
			require.ErrorAs(t, err, &value)
			require.Equal(t, "m", value.Value)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []string{c.host}, got)
	}
	_, err = post(transport, api, strings.Replace(chatBody(4000, ""), `"m"`, `"mini"`, 1))
	var large *TooLargeError
	require.ErrorAs(t, err, &large)
	got = nil
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://any/v1/models", nil)
	_, err = transport.RoundTrip(r)
	require.NoError(t, err)
	require.Equal(t, []string{"GET api.openai.com"}, got)
	transport.requireOver(t)
}

// People go before a batch, at one quota and at several deployments, and the batch ends as early as without them.
func TestClasses(t *testing.T) {
	classes := WithClasses(nil, fair.Class{Name: "people", Priority: 1}, fair.Class{Name: "batch"})
	limits := Limits{RequestsPerMinute: 100, TokensPerMinute: 60_000}
	for name, build := range map[string]func(http.RoundTripper) (http.RoundTripper, error){
		"one": func(base http.RoundTripper) (http.RoundTripper, error) { return New(base, OpenAI(), limits, classes) },
		"two": func(base http.RoundTripper) (http.RoundTripper, error) {
			half := Limits{RequestsPerMinute: 50, TokensPerMinute: 30_000}
			return NewDeployments(base, []Deployment{
				{Provider: OpenAI(), Base: urlOf("https://a/v1"), Limits: half}, {Provider: OpenAI(), Base: urlOf("https://b/v1"), Limits: half},
			}, classes)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			transport, err := build(trip(func(r *http.Request) (*http.Response, error) { return used(50, 50), nil }))
			require.NoError(t, err)
			begin := time.Now()
			var all sync.WaitGroup
			send := func(class string) {
				ctx := fair.With(t.Context(), class, "")
				_, err := postWithin(ctx, transport, api, chatBody(50, `,"max_tokens":50`))
				require.NoError(t, err)
			}
			for range 1000 { // ten minutes
				all.Go(func() { send("batch") })
			}
			time.Sleep(150 * time.Second)
			var longest time.Duration
			for range 20 {
				time.Sleep(2 * time.Second)
				from := time.Now()
				send("people")
				longest = max(longest, time.Since(from))
			}
			all.Wait()
			t.Log(name, longest, time.Since(begin))
			require.LessOrEqual(t, longest, time.Minute+time.Second, "a window's worth at most")
			require.LessOrEqual(t, time.Since(begin), 11*time.Minute)
		})
	}
}

// Whoever leaves, breaks or panics holds no deployment.
func TestDeploymentsAreFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		how := "breaks"
		list := two()[:1]
		list[0].Limits = Limits{RequestsPerMinute: 5}
		transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) {
			switch how {
			case "breaks":
				return nil, io.ErrUnexpectedEOF
			case "panics":
				panic(how)
			}
			return used(1, 1), nil
		}), list)
		require.NoError(t, err)
		_, err = post(transport, api, `{"model":"m"}`)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		how = "panics"
		require.Panics(t, func() { post(transport, api, `{"model":"m"}`) })
		how = ""
		for range 3 {
			_, err = post(transport, api, `{"model":"m"}`)
			require.NoError(t, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				_, err := postWithin(ctx, transport, api, `{"model":"m"}`)
				require.ErrorIs(t, err, context.Canceled)
			})
		}
		synctest.Wait()
		cancel()
		all.Wait()
		transport.requireOver(t)
		begin := time.Now()
		_, err = post(transport, api, `{"model":"m"}`)
		require.NoError(t, err)
		require.InDelta(t, 60.25, time.Since(begin).Seconds(), 0.01)
		transport.requireOver(t)
	})
}

// While a call is on its way through to a deployment, one with a deadline is not refused.
func TestDeploymentIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan bool)
		transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) { return used(1, 1), nil }), two()[:1],
			WithOutbound(outbound.WithHooks(outbound.Hooks{Waited: func(*http.Request, time.Duration) { <-hold }})))
		require.NoError(t, err)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := postWithin(ctx, transport, api, `{"model":"m","max_tokens":5}`)
				require.NoError(t, err)
			})
			time.Sleep(10 * time.Millisecond)
		}
		close(hold)
		all.Wait()
		transport.requireOver(t)
	})
}

// Calls of two classes that are refused, break, leave, have deadlines and panic, at random: in the end all are over,
// and whoever has time is answered.
func TestDeploymentsAtRandom(t *testing.T) {
	seeds := 5
	if long() {
		seeds = 50
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			dice := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n)
			}
			list := []Deployment{}
			for i, host := range []string{"a", "b", "c"} {
				list = append(list, Deployment{
					Provider: OpenAI(), Base: urlOf("https://" + host + "/v1"), Tier: i / 2,
					Limits: Limits{RequestsPerMinute: 20 + 10*i, TokensPerMinute: 3000},
				})
			}
			transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) {
				if r.Body != nil {
					io.Copy(io.Discard, r.Body)
					r.Body.Close()
				}
				time.Sleep(time.Duration(dice(3000)) * time.Millisecond)
				switch dice(20) {
				case 0:
					return nil, io.ErrUnexpectedEOF
				case 1, 2:
					return says(429, "{}", "Retry-After: "+strconv.Itoa(dice(30))), nil
				case 3:
					return says(503, "{}"), nil
				case 4:
					panic("base")
				}
				return used(dice(200), dice(100)), nil
			}), list, WithClasses(nil, fair.Class{Name: "people", Priority: 1}, fair.Class{Name: "batch"}))
			require.NoError(t, err)
			var all sync.WaitGroup
			for i := range 200 {
				time.Sleep(time.Duration(dice(500)) * time.Millisecond)
				class, size, patience := []string{"people", "batch"}[dice(2)], dice(100), time.Duration(dice(400))*time.Second
				ctx, cancel := context.WithCancel(fair.With(t.Context(), class, ""))
				switch i % 3 {
				case 0:
					time.AfterFunc(patience, cancel)
				case 1:
					ctx, cancel = context.WithTimeout(ctx, patience+1)
				}
				all.Go(func() {
					defer cancel()
					defer func() {
						if broken := recover(); broken != nil {
							require.Equal(t, "base", broken)
						}
					}()
					_, err := postWithin(ctx, transport, api, chatBody(size, `,"max_tokens":100`))
					if i%3 == 2 && err != nil {
						require.ErrorIs(t, err, io.ErrUnexpectedEOF)
					}
				})
			}
			all.Wait()
			transport.requireOver(t)
		})
	}
}

// A redirect leads to another host without any deployment's credential.
func TestDeploymentRedirects(t *testing.T) {
	var got []string
	transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) {
		got = append(got, r.URL.Host+" "+r.Header.Get("Authorization"))
		if r.URL.Host == "api.openai.com" {
			return says(307, "", "Location: https://evil/v1/x"), nil
		}
		return used(1, 1), nil
	}), two()[:1])
	require.NoError(t, err)
	response, err := (&http.Client{Transport: transport}).Post(api, doc, strings.NewReader(`{"model":"m"}`))
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, []string{"api.openai.com Bearer o", "evil "}, got)
}

// So does one to another path of the same host, where a deployment's path does not go before it.
func TestDeploymentRedirectsToAnotherPath(t *testing.T) {
	var got []string
	transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) {
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		if r.Method == http.MethodPost {
			return says(303, "", "Location: /login"), nil
		}
		return says(200, "{}"), nil
	}), two()[:1])
	require.NoError(t, err)
	response, err := (&http.Client{Transport: transport}).Post(api, doc, strings.NewReader(`{"model":"m"}`))
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, []string{"POST /v1/chat/completions Bearer o", "GET /login "}, got)
}

// A redirect out of the deployments stays outside at its next one, and one of a call that is not paced is out as well.
func TestDeploymentRedirectsAgain(t *testing.T) {
	var got []string
	transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) {
		got = append(got, r.URL.Host+r.URL.Path+" "+r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/v1/chat/completions":
			return says(307, "", "Location: https://evil/x/chat/completions"), nil
		case "/x/chat/completions":
			return says(307, "", "Location: https://evil/y/chat/completions"), nil
		case "/v1/models":
			return says(307, "", "Location: https://api.openai.com/admin"), nil
		}
		return says(200, "{}"), nil
	}), two()[:1])
	require.NoError(t, err)
	client := &http.Client{Transport: transport}
	response, err := client.Post(api, doc, strings.NewReader(`{"model":"m"}`))
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, []string{"api.openai.com/v1/chat/completions Bearer o", "evil/x/chat/completions ", "evil/y/chat/completions "}, got)
	got = nil
	response, err = client.Get("https://api.openai.com/v1/models")
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, []string{"api.openai.com/v1/models Bearer o", "api.openai.com/admin "}, got)
}

func TestDeploymentsInput(t *testing.T) {
	for want, list := range map[string][]Deployment{
		"llm: the number of deployments is 0; want at least 1":                    {},
		"llm: Base of deployment 0 is <nil>; want a URL with a scheme and a host": {{Provider: OpenAI()}},
		"llm: Base of deployment 0 is /v1; want a URL with a scheme and a host":   {{Provider: OpenAI(), Base: urlOf("/v1")}},
		"llm: the limit of tokens is -1; want 0 or more":                          {{Provider: OpenAI(), Base: urlOf("https://a"), Limits: Limits{TokensPerMinute: -1}}},
	} {
		_, err := NewDeployments(nil, list)
		require.EqualError(t, err, want)
	}
	_, err := New(nil, OpenAI(), Limits{}, WithClasses(nil))
	require.EqualError(t, err, "fair: the number of classes is 0; want at least 1")
}

// Nothing is known of two deployments: at each one call finds its limits, and those that wait are charged to them.
func TestDeploymentsOfUnknownLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		got := map[string]int{}
		begin := time.Now()
		transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			got[r.URL.Host]++
			n, limit := got[r.URL.Host], map[string]int{"a": 10, "b": 20}[r.URL.Host]
			mu.Unlock()
			time.Sleep(map[string]time.Duration{"a": time.Second, "b": 2 * time.Second}[r.URL.Host])
			if n > limit {
				return says(429, "{}", "Retry-After: 60"), nil
			}
			return used(1, 1, "x-ratelimit-limit-requests: "+strconv.Itoa(limit), "x-ratelimit-limit-tokens: 1000000",
				"x-ratelimit-remaining-requests: "+strconv.Itoa(limit-n), "x-ratelimit-remaining-tokens: 999999"), nil
		}), []Deployment{{Provider: OpenAI(), Base: urlOf("https://a/v1")}, {Provider: OpenAI(), Base: urlOf("https://b/v1")}})
		require.NoError(t, err)
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				status, err := post(transport, api, `{"model":"m","max_tokens":1}`)
				require.NoError(t, err)
				require.Equal(t, 200, status)
			})
		}
		time.Sleep(500 * time.Millisecond)
		mu.Lock()
		require.Equal(t, map[string]int{"a": 1, "b": 1}, got)
		mu.Unlock()
		all.Wait()
		require.Equal(t, map[string]int{"a": 10, "b": 20}, got)
		require.LessOrEqual(t, time.Since(begin), 5*time.Second)
		transport.requireOver(t)
	})
}

// A model whose deployment is full keeps no call for another model waiting.
func TestDeploymentsOfSeveralModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) { return used(1, 1), nil }), []Deployment{
			{Provider: OpenAI(), Base: urlOf("https://a/v1"), Limits: Limits{RequestsPerMinute: 1}, Models: map[string]string{"x": "x"}},
			{Provider: OpenAI(), Base: urlOf("https://b/v1"), Limits: Limits{RequestsPerMinute: 100}, Models: map[string]string{"y": "y"}},
		})
		require.NoError(t, err)
		begin := time.Now()
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { post(transport, api, `{"model":"x"}`) })
		}
		synctest.Wait()
		_, err = post(transport, api, `{"model":"y"}`)
		require.NoError(t, err)
		require.Zero(t, time.Since(begin))
		all.Wait()
	})
}

// A conversation stays at the deployment that served it last, as long as that has room.
func TestStickyDeployments(t *testing.T) {
	var got []string
	transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) {
		got = append(got, r.URL.Host)
		return used(1, 1), nil
	}), []Deployment{
		{Provider: OpenAI(), Base: urlOf("https://a/v1"), Limits: Limits{RequestsPerMinute: 5}},
		{Provider: OpenAI(), Base: urlOf("https://b/v1"), Limits: Limits{RequestsPerMinute: 5}},
	})
	require.NoError(t, err)
	for range 7 {
		_, err := postWithin(pool.WithKey(t.Context(), "conversation"), transport, api, `{"model":"m"}`)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"a", "a", "a", "a", "a", "b", "b"}, got)
}

// A call goes to the deployment that serves its model, with that deployment's limit, also if it is not the last one.
func TestTheDeploymentThatServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var hosts []string
		transport, err := NewDeployments(trip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			hosts = append(hosts, r.URL.Host)
			return used(1, 1), nil
		}), []Deployment{
			{Provider: OpenAI(), Base: urlOf("https://a/v1"), Limits: Limits{RequestsPerMinute: 1}, Models: map[string]string{"x": "x"}},
			{Provider: OpenAI(), Base: urlOf("https://b/v1"), Limits: Limits{RequestsPerMinute: 1}, Models: map[string]string{"y": "y"}},
		})
		require.NoError(t, err)
		begin := time.Now()
		for _, model := range []string{"x", "x", "x", "y"} {
			status, err := post(transport, api, `{"model":"`+model+`","max_tokens":1}`)
			require.NoError(t, err)
			require.Equal(t, 200, status)
		}
		require.Equal(t, []string{"a", "a", "a", "b"}, hosts)
		require.GreaterOrEqual(t, time.Since(begin), 2*time.Minute)
		transport.requireOver(t)
	})
}
