package shared

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/reserve"
)

// fakeScript is the script with a clock of the test's. Its keys live for an hour longer, since the server's own time
// goes on meanwhile.
var fakeScript = newScript(strings.NewReplacer(
	"redis.call('TIME')", "{0, unpack('<d', arg, #arg - 7)}",
	"'PX', ttl - ttl % 1", "'PX', 3.6e6 + ttl - ttl % 1",
).Replace(saleSource + machineSource))

// FakeTime makes the script, and the limiter with it, read the time from the
// pointer: microseconds.
func FakeTime(micros *int64) Option {
	return func(s *settings) error {
		s.script = fakeScript
		s.clock = func() int64 { return *micros }
		s.now = func() int64 { return (*micros % 1e12) * 1000 }
		s.begin = time.Unix(0, 0)
		return nil
	}
}

// Key is the limiter's key in Redis.
func (l *Limiter) Key() string { return l.key }

// Empty is the state of the limiter with nothing stored, in Redis and in a store.
func (l *Limiter) Empty(micros float64, store bool) string {
	if t, now := l.terms.Load(), int64(micros)*1000; store {
		j := &journal{terms: t, then: now, last: now, rules: t.rules, newest: 1}
		j.saved = smooth.New(t.curve, now, 0, t.upfront).AppendState(nil, now)
		return string(j.encode())
	}
	t := l.terms.Load()
	head, span := append([]byte("pac\x05"), byte(t.measure())), 0.0
	if !t.unlimited() {
		span = t.capacity / t.curve.Refill
	}
	return string(doubles(head, t.capacity, t.curve.Refill, span, micros, micros, 0, 1, micros))
}

// A Sale is what the script said about one request.
type Sale struct {
	Granted bool
	Wait    int64
	promise *promise
}

// Sell asks for permits within limit nanoseconds.
func (l *Limiter) Sell(permits int, limit int64) (Sale, error) {
	r := buys(permits, limit, never)
	err := l.do(context.Background(), r)
	return Sale{Granted: r.granted, Wait: r.wait, promise: &promise{limiter: l, slot: r.slot, permits: r.permits, ready: r.ready}}, err
}

// Look returns what is stored, the debt in nanoseconds, and the permits that can be had at once in
// spite of it.
func (l *Limiter) Look() (stored, debt float64, atOnce int64, err error) {
	r := looks()
	err = l.do(context.Background(), r)
	t := l.terms.Load()
	if _, store := l.nodes.single.keeper.(*storeKeeper); store {
		_, cost := t.curve.Price(r.after.stored, 1)
		if debt = float64(r.after.wait); t.upfront {
			debt -= cost
		}
	} else if r.after.queued {
		debt = (r.after.left - r.after.level) * t.curve.Interval
		atOnce = int64(r.after.left)
	}
	return r.after.stored, debt, atOnce, err
}

// Pause pauses the limiter for so many nanoseconds of the script's clock; 0 ends the pause.
func (l *Limiter) Pause(d int64) error {
	return l.do(context.Background(), changes(change{pause: cmp.Or(d, resume)}))
}

// SellList asks for all in one call.
func (l *Limiter) SellList(limits []int64, permits []int) ([]Sale, error) {
	var list []*request
	for i := range permits {
		list = append(list, buys(permits[i], limits[i], never))
	}
	err := l.send(context.Background(), list)
	var sales []Sale
	for _, r := range list {
		sales = append(sales, Sale{Granted: r.granted, Wait: r.wait, promise: &promise{limiter: l, slot: r.slot, permits: r.permits, ready: r.ready}})
	}
	return sales, err
}

// Part gives back all permits of a promise but so many, and returns the promise of these.
func Part(of reserve.Promise, keep int) (reserve.Promise, error) {
	p := of.(*promise)
	back := refund{slot: p.slot, permits: p.permits - keep}
	err := p.limiter.do(context.Background(), changes(change{refund: &back}))
	rest := back.rest()
	rest.others = 0 // they have come back
	return &promise{limiter: p.limiter, slot: rest, permits: keep, ready: p.ready}, err
}

func (s Sale) Promise() reserve.Promise { return s.promise }

// SellUntil asks for permits in a call that the server must not run after that time of the limiter's, and reports
// whether it did not.
func (l *Limiter) SellUntil(permits int, at int64) (late bool, err error) {
	n := l.node()
	o := &order{terms: l.terms.Load(), now: l.now}
	o.clear(n.clock.at(at))
	o.write([]*request{buys(permits, never, never)}, 0, &n.clock)
	err = n.keeper.decide(context.Background(), l.key, o)
	return o.late, err
}

// Owed is how many permits Redis does not know of yet.
func (l *Limiter) Owed() int64 { return l.owed.permits.Load() }

// asked returns the permits and longest waits in the script's argument, and when the call is too late.
func asked(arg []byte) (requests [][2]float64, refunds int, notAfter int64) {
	at := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(arg[8*i:])) }
	for i := range int(at(13)) {
		j := 11 + 3*i
		if i == 0 {
			j = 4
		}
		requests = append(requests, [2]float64{at(j), at(j + 1)})
	}
	return requests, max(0, int(at(12))-1), int64(at(3))
}

// owedIn returns the permits in the script's argument that were granted without it.
func owedIn(arg []byte) int {
	at := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(arg[8*i:])) }
	if at(12) == 0 {
		return 0
	}
	return int(at(15 + 3*max(0, int(at(13))-1)))
}

// Owe counts permits as granted without the store, as of now.
func (l *Limiter) Owe(n int) {
	l.owe(n)
}

// Terms are what a policy says in numbers.
func Terms(p *reserve.Policy) *engine.Terms { return (*engine.Policy)(p).Terms() }

// Tamper does to a memory store what some of Redis's commands do.
func Tamper(in Store, args ...any) (any, error) {
	m := in.(*memory)
	key := args[1].(string)
	switch args[0] {
	case "DEL":
		delete(m.values, key)
	case "SET":
		m.values[key] = []byte(fmt.Sprint(args[2]))
	case "GET":
		return string(m.values[key]), nil
	case "STRLEN":
		return int64(len(m.values[key])), nil
	default:
		return nil, errors.New("what is that?")
	}
	return "OK", nil
}

// GiveBack gives back what was bought ahead.
func (l *Limiter) GiveBack() {
	l.stock.mu.Lock()
	l.stock.renew()
	if l.stock.timer != nil {
		l.stock.timer.Stop()
	}
	l.stock.mu.Unlock()
	l.flush()
}

// Take splits a promise as a stock does a lot: into its last n permits, and the rest.
func Take(of reserve.Promise, n int) (taken, rest reserve.Promise) {
	p := of.(*promise)
	return &promise{limiter: p.limiter, slot: p.slot, permits: n, ready: p.ready},
		&promise{limiter: p.limiter, slot: refund{slot: p.slot, permits: n}.rest(), permits: p.permits - n, ready: p.ready}
}

// Stored is a key's name in the store.
func (k *Keyed) Stored(key string) string { return k.stored(key) }
