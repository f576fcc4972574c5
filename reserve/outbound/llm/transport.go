package llm

import (
	"cmp"
	"net/http"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/internal/recent"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

// Transport is an [http.RoundTripper] that paces calls to language models. All methods may be called at the same time.
// It must not be copied.
type Transport struct {
	settings
	preset *preset
	given  Limits // for models without limits of their own; guarded by the table's lock
	base   http.RoundTripper
	paced  *outbound.Transport

	table    table
	policies sync.Mutex
	latest   [calls]latest // guarded by policies
	ignored  *ignored
	awaited  recent.Map[string, *waitingCall] // responses in the background, by id
}

// New returns a transport that sends calls with base (nil: [http.DefaultTransport]) as the provider's limits allow. It
// goes into the client of an SDK:
//
//	client := &http.Client{Transport: transport}
//	openai.NewClient(option.WithHTTPClient(client))               // and anthropic.NewClient
//	genai.NewClient(ctx, &genai.ClientConfig{HTTPClient: client}) // Google's
//
// Limits{} is what the responses tell:
//
//	OpenAI, AzureOpenAI, Anthropic   the limits a minute of the first response; the same with OpenAI's preset at Groq,
//	                                 Mistral and Cerebras
//	Gemini, Bedrock, others          no limit: calls go at once (Ollama, vLLM, OpenRouter, Together)
//
// A refusal stops the key for as long as it says (Retry-After, Google's RetryInfo). Then without a limit one call goes,
// and more as answers allow: with 60 calls at once, and 15 allowed a minute, none fails with an SDK's two retries.
//
// After refusals that say no time, as many calls of the key are out as were not refused, and one more each time that
// four times as many were accepted; where a limit a minute is known, after each four. If all are refused, calls wait
// for 1 s to 8 s, then one goes. A refusal that others of the same kind disprove counts as chance, until the third in a
// row. At a server that takes 8 at a time and answers others with a bare 503, 200 calls take 52 s, and 50 s at best.
//
// [outbound.WithRetries] sends a refused call again. New returns a *[reserve.ValueError] for the zero Provider, a
// negative limit, and what the options refuse.
func New(base http.RoundTripper, p Provider, l Limits, opts ...Option) (*Transport, error) {
	t, err := newTransport(base, p, l, opts)
	if err != nil {
		return nil, err
	}
	t.paced, err = outbound.New(sender{t.base}, nil, t.limited()...)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func newTransport(base http.RoundTripper, p Provider, l Limits, opts []Option) (*Transport, error) {
	if p.preset == nil {
		return nil, valueError("the provider", nil, "OpenAI(), AzureOpenAI(), Anthropic(), Gemini() or Bedrock()")
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	if base == nil {
		base = http.DefaultTransport
	}
	t := &Transport{preset: p.preset, given: l, base: base, ignored: new(ignored)}
	t.settings = settings{
		limits: map[string]Limits{}, clock: clockwork.NewRealClock(), margin: 250 * time.Millisecond, maxKeys: 1024,
		window: p.window, bucket: p.bucket, settles: p.settles, unlimited: queue.Unlimited(nil),
		key: func(_ *http.Request, key Key) Key { return key },
	}
	t.table.accounts, t.table.others = accounts{}, accounts{}
	for _, opt := range opts {
		if err := opt(&t.settings); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *Transport) limited() []outbound.Option {
	opts := append(t.settings.outbound, gates()...)
	for k := range kinds {
		opts = append(opts, outbound.WithLimit(limitOf(k)))
	}
	return opts
}

func limitOf(k kind) outbound.Limit {
	l := outbound.Limit{
		Name: names[k],
		Keyed: func(r *http.Request) (any, reserve.Reserver) {
			a := callOf(r).account
			return a.key, a.reserver(k)
		},
		Cost:  func(r *http.Request) int { return callOf(r).price(k) },
		Exact: k != calls,
	}
	l.Recost = l.Cost // other calls end while it waits, and tell limits or improve its estimate
	if k.isTokens() {
		l.Lost = func(r *http.Request) (int, bool) { return callOf(r).lost(k) }
		l.Used = func(r *http.Response) outbound.Usage { return callOf(r.Request).used(k, r) }
	}
	return l
}

// RoundTrip sends a request when the limits have room for it. Its errors are those of [outbound.Transport.RoundTrip],
// and *[TooLargeError]. The request is not changed, and its body is always closed.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	e := endpointOf(r)
	if e.free {
		t.ignored.add(&t.ignored.Unpaced)
		response, err := t.base.RoundTrip(r)
		if w := t.find(r); w != nil && err == nil && response.StatusCode == http.StatusOK {
			new(reading).begin(response, t, w)
		}
		return response, err
	}
	c := &call{Context: r.Context(), endpoint: e}
	response, err := t.send(c, r)
	return t.answered(r, response, err)
}

func (t *Transport) send(c *call, r *http.Request) (response *http.Response, err error) {
	send, err := c.readFrom(r, t.estimate != nil || t.asks)
	if err != nil {
		bodies.Close(r)
		return nil, err
	}
	t.enroll(c, r)
	defer func() { c.over(response) }()
	if err = c.fits(); err != nil {
		bodies.Close(send)
		return nil, err
	}
	if t.asks {
		send = c.askForUsage(send, c.body)
	}
	c.prompt.body = nil
	return c.orTooLarge(t.paced.RoundTrip(send.WithContext(c)))
}

func (t *Transport) enroll(c *call, r *http.Request) {
	c.model = cmp.Or(c.endpoint.model, c.model)
	c.file = !c.json && isFile(r)
	if c.endpoint.silent {
		c.output, c.most = 0, true
	}
	if t.estimate != nil {
		input, output := t.estimate(r, c.prompt.body)
		c.input, c.output, c.most = min(max(0, input), maxTokens), min(max(0, output), maxTokens), false
	}
	c.key = t.key(r, Key{Host: r.URL.Host, Model: cutModel(c.model), Credential: identify(t.preset.credential(r))})
	c.account = t.enter(c.key)
	c.account.forgetOld()
	c.class = c.account.classOf(kindOfCall{c.endpoint.name, c.streams, c.state, c.blobs > 0})
}

// Ignored returns what the transport has ignored so far.
func (t *Transport) Ignored() Ignored { return t.ignored.read() }

// CloseIdleConnections closes the base transport's, for [http.Client.CloseIdleConnections].
func (t *Transport) CloseIdleConnections() { t.paced.CloseIdleConnections() }

// Snapshot returns the state of all limits of all used keys.
func (t *Transport) Snapshot() outbound.Snapshot { return t.paced.Snapshot() }
