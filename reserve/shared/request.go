package shared

// A request is for permits, for a change of the state, or only for the state.
type request struct {
	purchase // of no permits: none
	change   // the zero change: none
	place
	charged bool    // although there was none the store may have granted the permits
	after   outlook // the requests of the list
}

type purchase struct {
	permits  int
	maxWait  int64 // nanoseconds, from when the store decides
	deadline int64 // on the limiter's clock: ready by then; or never
	uses     bool  // this process tells when uses begin and end
	look     bool  // the answer says how long as many would wait

	answer
	ready int64 // on the limiter's clock
}

type change struct {
	refund *refund
	use    *told
	charge charge // of no permits: none
	pause  int64  // nanoseconds; or resume, reset
	stop   bool   // the pause is a stop: see engine.Observer
	terms  *terms // from now on; nil: as before
}

func buys(permits int, maxWait, deadline int64) *request {
	return &request{purchase: purchase{permits: permits, maxWait: maxWait, deadline: deadline}}
}

func changes(c change) *request { return &request{purchase: purchase{deadline: never}, change: c} }

func looks() *request { return changes(change{}) }

func (r *request) undo() (*request, bool) {
	return changes(change{refund: &refund{slot: r.slot, permits: r.permits}}), r.granted
}

// alone reports whether a call with the request buys nothing ahead: it might be from before a change, and would not be
// in a decision's answer.
func (r *request) alone() bool { return r.pause != 0 || r.terms != nil || r.look }
