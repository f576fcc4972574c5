package adapt

import "time"

// imposed finds a large share of 503s without a time that comes at any rate: backends are dead. If calls have become
// rarer by a third from one stretch to the next, and as large a share is refused, it is not the rate's doing. Copies
// cut together, so for them cutting helps. No call is sent to find out.
//
// Copies may believe in each other's refusals all the same. So who believes calls half as often for two seconds of each
// minute, as all others do who believe. If the share halves then, copies were the cause.
type imposed struct {
	begin       time.Time // of the stretch
	before, now tally     // in the stretch before, in this one

	believed bool
	dip      bool      // calls go half as often
	in, out  tally     // in dips, and outside
	wrong    time.Time // no other belief until then
}

type tally struct{ calls, refused, perSecond float64 }

const (
	span     = 0.7    // of a period, in a stretch
	rarer    = 2. / 3 // times the calls of the stretch before
	same     = 0.75   // of the share in the stretch before
	crowded  = 12.    // times the share at which the law stands still: copies do not impose as much
	least503 = 0.15   // of the calls: volleys find smaller shares
	most503  = 0.5
	dipEach  = time.Minute
	dipFrom  = 500 * time.Millisecond // for calls that are out
	dipTo    = 2500 * time.Millisecond
	telling  = 16. // refusals in dips, if the share were imposed
)

func (t *tally) add(refused bool) {
	if t.calls++; refused {
		t.refused++
	}
}

func (t *tally) share() float64 { return t.refused / max(1, t.calls) }

// weigh counts an answer.
func (r *Rate) weigh(now time.Time, refused bool) {
	i := &r.imposed
	if i.believed = i.believed && r.chance[unable].share > 0; i.believed {
		r.test(now, refused)
		return
	}
	i.dip = false
	i.now.add(refused)
	seconds := now.Sub(i.begin).Seconds()
	if seconds < span*r.period() {
		return
	}
	i.now.perSecond = i.now.calls / seconds
	next := imposed{begin: now, before: i.now, wrong: i.wrong}
	if i.now.like(i.before) && i.now.perSecond < i.before.perSecond {
		next.before = i.before
	}
	if r.guesses == 0 && now.After(i.wrong) && r.outlasts(i.before, i.now) {
		r.believe(now, unable, i.now.share())
		next.believed = true
	}
	*i = next
}

// outlasts reports whether refusals did not get fewer with the calls.
func (r *Rate) outlasts(before, now tally) bool {
	share := now.share()
	return before.refused > 1 && now.perSecond < rarer*before.perSecond && now.like(before) &&
		share >= least503 && share < most503 && share*now.perSecond*r.period() > crowded
}

// like reports whether about as large a share is refused.
func (t *tally) like(before tally) bool {
	return t.share() > same*before.share() && before.share() > same*t.share()
}

// test counts an answer while a share is believed.
func (r *Rate) test(now time.Time, refused bool) {
	i := &r.imposed
	since := now.Sub(now.Truncate(dipEach))
	if i.dip = since < dipTo; !i.dip {
		i.out.add(refused)
		return
	}
	if since > dipFrom {
		i.in.add(refused)
	}
	likely := i.in.calls * i.out.share()
	if likely < telling {
		return
	}
	if i.in.refused < likely/2 {
		r.chance[unable] = chance{}
		*i = imposed{begin: now, wrong: now.Add(remembered)}
	}
	i.in, i.out = tally{}, tally{}
}
