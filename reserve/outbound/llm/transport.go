package llm

import (
	"net/http"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

// A Transport is an [http.RoundTripper] that paces calls to language models. It comes from [New]. All methods may be
// called at the same time. It must not be copied.
type Transport struct {
	settings
	preset *preset
	given  Limits // for models without limits of their own
	base   http.RoundTripper
	paced  *outbound.Transport

	table    table
	policies policies // guarded by the table's lock
	ignored  ignored
}

// New returns a transport that sends calls with base (nil: [http.DefaultTransport]) as the
// provider's limits allow.
//
//	transport, err := llm.New(nil, llm.OpenAI(), llm.Limits{RequestsPerMinute: 500, TokensPerMinute: 200_000})
//	...
//	client := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: transport}))
//
// With Anthropic's SDK (github.com/anthropics/anthropic-sdk-go):
//
//	limits := llm.Limits{RequestsPerMinute: 1000, InputTokensPerMinute: 450_000, OutputTokensPerMinute: 90_000}
//	transport, err := llm.New(nil, llm.Anthropic(), limits)
//	...
//	client := anthropic.NewClient(option.WithHTTPClient(&http.Client{Transport: transport}))
//
// and with Google's (google.golang.org/genai):
//
//	limits := llm.Limits{RequestsPerMinute: 150, InputTokensPerMinute: 2_000_000, RequestsPerDay: 10_000}
//	transport, err := llm.New(nil, llm.Gemini(), limits)
//	...
//	client, err := genai.NewClient(ctx, &genai.ClientConfig{HTTPClient: &http.Client{Transport: transport}})
//
// It returns a *[reserve.ValueError] for the zero Provider, a negative limit, and what the options
// refuse.
func New(base http.RoundTripper, p Provider, l Limits, opts ...Option) (*Transport, error) {
	if p.preset == nil {
		return nil, valueError("the provider", nil, "OpenAI(), AzureOpenAI(), Anthropic(), Gemini() or Bedrock()")
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	if base == nil {
		base = http.DefaultTransport
	}
	t := &Transport{preset: p.preset, given: l, base: base}
	t.settings = settings{margin: 250 * time.Millisecond, window: p.window, settles: p.settles, maxKeys: 1024}
	t.table.accounts, t.policies = map[Key]*account{}, policies{}
	for _, opt := range opts {
		if err := opt(&t.settings); err != nil {
			return nil, err
		}
	}
	if t.classes != nil && t.changed == nil {
		t.settings.outbound = append(t.settings.outbound, outbound.WithClasses(t.classOf, t.classes...))
	}
	for k := range kinds {
		t.settings.outbound = append(t.settings.outbound, outbound.WithLimit(t.limit(k)))
	}
	paced, err := outbound.New(sender{base}, nil, t.settings.outbound...)
	if err != nil {
		return nil, err
	}
	t.paced = paced
	return t, nil
}

// limit returns the limit of a kind, of all accounts.
func (t *Transport) limit(k kind) outbound.Limit {
	l := outbound.Limit{
		Name: names[k],
		Keyed: func(r *http.Request) (any, reserve.Reserver) {
			a := callOf(r).account
			return a.key, a.limits[k].by
		},
		Cost:  func(r *http.Request) int { return callOf(r).price(k) },
		Exact: true,
	}
	if k.isTokens() {
		l.Recost = l.Cost // other calls end while it waits, and improve its estimate
		l.Lost = func(r *http.Request) (int, bool) { return callOf(r).lost(k) }
		l.Used = func(r *http.Response) outbound.Usage { return callOf(r.Request).used(k, r) }
	}
	return l
}

// RoundTrip sends a request when the limits have room for it. Its errors are those of [outbound.Transport.RoundTrip],
// and *[TooLargeError]. The request is not changed, and its body is always closed. A request that asks no model for
// anything is sent at once, and counted: see [Ignored]. Such are a list of models, a batch, an upload, and a count of
// tokens.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	e := endpointOf(r)
	if e.free {
		t.ignored.add(unpaced)
		return t.base.RoundTrip(r)
	}
	c := &call{Context: r.Context(), endpoint: e}
	send, err := t.prepare(c, r)
	if err != nil {
		bodies.Close(r)
		return nil, err
	}
	response, err := t.send(c, send)
	if err != nil && t.answer {
		if refusal := t.refusal(r, err); refusal != nil {
			return refusal, nil
		}
	}
	return response, err
}

// prepare finds out what a request asks for, and whose quota it uses.
func (t *Transport) prepare(c *call, r *http.Request) (*http.Request, error) {
	send, err := c.readFrom(r, t.estimate != nil || t.asks)
	if err != nil {
		return send, err
	}
	t.enroll(c, r)
	if t.asks {
		send = c.askForUsage(send)
	}
	c.prompt.body = nil
	return send.WithContext(c), nil
}

// enroll finds out what a request that has been read would cost, and whose quota it uses.
func (t *Transport) enroll(c *call, r *http.Request) {
	if c.endpoint.model != "" {
		c.model = c.endpoint.model
	}
	c.file = !c.json && isFile(r)
	if c.endpoint.silent {
		c.output, c.most = 0, true
	}
	if t.estimate != nil {
		input, output := t.estimate(r, c.prompt.body)
		c.input, c.output, c.most = min(max(0, input), maxTokens), min(max(0, output), maxTokens), false
	}
	key := Key{Host: r.URL.Host, Model: cutModel(c.model), Credential: identify(r, t.preset.credential)}
	if t.key != nil {
		key = t.key(r, key)
	}
	c.account, c.waits = t.enter(key), true
	c.class = c.account.classOf(kindOfCall{c.endpoint.name, c.streams, c.state})
}

// send sends a call, once the limits of its account are known.
func (t *Transport) send(c *call, r *http.Request) (response *http.Response, err error) {
	defer func() {
		c.settleIn()
		c.departed()
		if response == nil || c.reading == nil || c.reading.response != response { // nothing reads what it used
			c.leave()
		}
	}()
	a := c.account
	if !a.known.Load() {
		var done func()
		if done, err = a.first.enter(c.Context, t.clock, a.known.Load); done != nil {
			defer done()
		}
	}
	if err == nil {
		err = c.fits()
	}
	if err == nil && c.state && t.settles {
		c.departed() // how long this takes is not known
		c.opened, err = c.class.first.enter(c.Context, t.clock, c.class.isKnown)
	}
	if err != nil {
		bodies.Close(r)
		return nil, err
	}
	response, err = t.paced.RoundTrip(r)
	if err == nil {
		a.observe(response)
		if c.asked {
			hideUsage(response)
		}
	}
	return response, err
}

// Ignored returns what the transport has ignored so far.
func (t *Transport) Ignored() Ignored { return t.ignored.read() }

// CloseIdleConnections closes those of the base transport, for [http.Client.CloseIdleConnections].
func (t *Transport) CloseIdleConnections() { t.paced.CloseIdleConnections() }

// A sender is the base transport, as the paced one uses it.
type sender struct{ base http.RoundTripper }

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	c := callOf(r)
	c.depart()
	response, err := s.base.RoundTrip(r)
	if err != nil {
		return response, err
	}
	if response.Request == nil || callOf(response.Request) != c {
		response.Request = r
	}
	if response.Body == nil { // http.Client puts up with it, too
		response.Body = http.NoBody
	}
	if response.StatusCode == http.StatusTooManyRequests {
		c.refused()
	}
	return response, nil
}

func (s sender) CloseIdleConnections() {
	if c, ok := s.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// now reads the clock.
func (t *Transport) now() time.Time {
	if t.clock == nil {
		return time.Now()
	}
	return t.clock.Now()
}
