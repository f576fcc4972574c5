package shared

import (
	"cmp"
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"github.com/nextfree/pace/reserve/shared/internal/pipeline"
)

// A Scripter runs scripts on Redis or Valkey. Package goredis has one for go-redis.
//
// Eval runs the script on one key with one argument and returns its answer, a string of bytes. It must run it at most
// once (a repeated charge counts twice), return when the context ends, and not keep arg. It should send the script's
// hash (EVALSHA), and the source (EVAL) if the server answers NOSCRIPT. The text of a server's error begins with
// Redis's own: "WRONGTYPE", "OOM".
//
// A Scripter may also have these methods:
//
//   - Check() error: [New] returns its error.
//   - Reload(context.Context) looks again where a server is, before it is probed.
//   - Node(key string) string names the server of a key, without blocking. Each then has its own circuit and pipeline.
type Scripter interface {
	Eval(ctx context.Context, script *Script, key string, arg []byte) (answer []byte, err error)
}

type Script struct {
	Source string
	Hash   string // SHA-1, in hexadecimal, which is what EVALSHA wants
}

func newScript(source string) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{Source: source, Hash: hex.EncodeToString(sum[:])}
}

var (
	//go:embed sale.lua
	saleSource string
	//go:embed machine.lua
	machineSource string

	script = newScript(saleSource + machineSource)
)

type scriptKeeper struct {
	Scripter
	settings *settings
	many     queue[*keyCall] // of calls that go together, if the client can send many
}

type keyCall struct {
	pipeline.Call
	place
}

func (c *keyCall) undo() (*keyCall, bool) { return nil, false }

func (k *scriptKeeper) eval(ctx context.Context, key string, arg []byte) ([]byte, error) {
	if k.many.send == nil {
		return k.Eval(ctx, k.settings.script, key, arg)
	}
	until, _ := ctx.Deadline()
	by := k.settings.now() + int64(time.Until(until))
	c := &keyCall{Call: pipeline.Call{Key: key, Arg: arg, Err: errAborted}, place: place{by: by}}
	if err := k.many.do(ctx, c); err == errPatience {
		return nil, context.DeadlineExceeded
	} else if err != nil {
		return nil, err
	}
	return c.Answer, cmp.Or(c.err, c.Err)
}

func (k *scriptKeeper) sendMany(ctx context.Context, list []*keyCall) error {
	calls, by := make([]*pipeline.Call, len(list)), int64(0)
	for i, c := range list {
		calls[i] = &c.Call
		by = max(by, c.by)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(by-k.settings.now()))
	defer cancel()
	if c := calls[0]; len(calls) == 1 {
		c.Answer, c.Err = k.Eval(ctx, k.settings.script, c.Key, c.Arg)
	} else {
		k.Scripter.(pipeline.Client).EvalEach(ctx, k.settings.script.Hash, k.settings.script.Source, calls)
	}
	return nil
}

func (k *scriptKeeper) decide(ctx context.Context, key string, o *order) error {
	o.terms = cmp.Or(o.next, o.terms)
	for _, c := range o.charges {
		if !c.bounded {
			o.asked = append(o.asked, wanted{permits: c.permits, limit: never, by: never})
		}
	}
	o.buffer = o.append(o.buffer[:0])
	if k.settings.clock != nil {
		o.buffer = doubles(o.buffer, float64(k.settings.clock()))
	}
	answer, err := k.eval(ctx, key, o.buffer)
	if err != nil {
		o.buffer = nil // the call may be under way
		return err
	}
	return o.read(answer)
}

func (o *order) owed() charge {
	for _, c := range o.charges {
		if c.bounded {
			return c
		}
	}
	return charge{}
}

func (o *order) append(b []byte) []byte {
	more := 0.0
	owed := o.owed()
	if o.next != nil || o.pause != 0 || len(o.refunds) > 0 || owed.permits > 0 {
		more = 1 + float64(len(o.refunds))
	}
	t, simple, first := o.terms, 0.0, wanted{}
	if len(o.asked) > 0 {
		first = o.asked[0]
	}
	if len(o.asked) == 1 && more == 0 && t.line.Base == 0 && t.capacity >= 0 && first.limit >= 0 {
		simple = 4
	}
	b = doubles(b, simple+t.measure(), t.capacity, t.curve.Refill, float64(o.notAfter/1000))
	b = first.append(b)
	b = append(b, t.packed...)
	b = doubles(b, more, float64(len(o.asked)))
	for _, a := range o.asked[min(1, len(o.asked)):] {
		b = a.append(b)
	}
	if more > 0 {
		b = doubles(b, float64(o.pause), float64(owed.permits), float64(owed.age))
		for _, r := range o.refunds {
			c := r.comeback(t)
			b = doubles(b, c.number, c.sold, c.begin, c.length, c.ready, c.kept, c.worth, c.whole, c.paid, c.most)
		}
	}
	return b
}

func (w wanted) append(b []byte) []byte {
	return doubles(b, float64(w.permits), float64(w.limit), float64(w.by/1000))
}

func (o *order) read(answer []byte) error {
	const late, sold, decided = 1, 4, 6
	n := len(answer) / 8
	if len(answer)%8 != 0 || n != late && n != sold && n != decided+len(o.asked) {
		return fmt.Errorf("shared: an answer of %d bytes", len(answer))
	}
	at := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(answer[8*i:])) }
	o.decided = int64(at(0)) * 1000
	if o.late = n == late; o.late {
		return nil
	}
	s := state{time: at(1), slot: at(2), stored: at(3)}
	for i := range o.refunds {
		o.refunds[i].wait = o.refunds[i].waits(s.time)
	}
	if n > sold {
		s.debt, s.deferred = at(4), at(5)
	}
	for i, w := range o.asked {
		wait := 0.0
		if n > sold {
			wait = at(decided + i)
		}
		a := answerOf(wait)
		if a.granted {
			a.slot = s.sell(o.terms, w.permits, a.wait)
		}
		o.answers = append(o.answers, a)
	}
	o.after = s.outlook(o.terms)
	for i, w := range o.asked {
		if w.look {
			o.answers[i].again = s.wait(o.terms, w.permits)
		}
	}
	return nil
}

// answerOf decodes a wait; -1 - wait is a refused request's.
func answerOf(wait float64) answer {
	if wait < 0 {
		return answer{wait: toWait(-1 - wait)}
	}
	return answer{granted: true, wait: toWait(wait)}
}

func doubles(b []byte, fs ...float64) []byte {
	for _, f := range fs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
	}
	return b
}
