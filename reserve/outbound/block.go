package outbound

import (
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve/internal/adapt"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// blocks are those of keys that were refused without a time: see [adapt.Block].
type blocks struct {
	memory[*adapt.Block]
	used atomic.Bool // fast path: some call was refused without a time
}

// holdBlocked is for how long a blocked key lets no other call go after one, unless that one is refused before.
const holdBlocked = time.Second

// of returns the block of a limit's key; nil: it was never refused without a time.
func (b *blocks) of(a *charge) *adapt.Block {
	if !b.used.Load() {
		return nil
	}
	block, _ := b.get(keys{a.limit, a.key})
	return block
}

// refuse counts a refusal without a time for the limits that it blames. It returns for how long no
// call should go; 0: the keys are not blocked.
func (b *blocks) refuse(c *call, s *reply.Reply) (wait time.Duration) {
	if s.Told && s.After > 0 || wantedBy(c.concerned()) > 0 {
		return 0
	}
	b.used.Store(true)
	for i, all := 0, c.concerned(); i < len(all); i++ {
		if a := &all[i]; blamed(all, i, s) {
			block := b.getOr(keys{a.limit, a.key}, new(adapt.Block))
			wait = max(wait, block.Refused(c.heard, c.sent, s.Status >= 500))
		}
	}
	return wait
}

// accept ends the blocks of a call's limits. After one that was meant for this client, the limit keeps
// away from the rate that led to it.
func (b *blocks) accept(c *call) {
	for i, all := 0, c.concerned(); i < len(all); i++ {
		a := &all[i]
		block := b.of(a)
		if block == nil {
			continue
		}
		lasted := block.Accepted(c.heard, c.sent)
		switch {
		case lasted == 0:
		case a.rate != nil:
			a.rate.change(func(rate *adapt.Rate) { rate.Blocked(c.heard, lasted) })
		default:
			c.t.derated.begin(a, c.sent, c.heard.Add(-lasted), c.heard)
		}
	}
}

// hold lets one call at a time go to a blocked key.
func (b *blocks) hold(c *call, a *charge) {
	if block := b.of(a); block != nil && block.On() {
		c.t.stop(a, c.sent.Add(holdBlocked))
	}
}
