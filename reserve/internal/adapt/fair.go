package adapt

// fair finds which part of a quota to use that other programs use as well. The server says what is
// left of it, to all of them: who believed that all of it were his own would be as fast as all of them
// together should be.
//
// What is left falls by what all use, so this program's part is known: what it used itself, over that.
// It moves towards a half, by a share of the distance that does not depend on the part: so the parts
// of all programs become equal, of however many, and a greedy one leaves a quarter.
type fair struct {
	part float64 // of what is used, that this program uses; 0: not known
	left float64 // what was left when own was 0
	own  float64 // permits used since
	gone bool    // nothing is left
}

const (
	fairSample = 16. // permits that a part is measured over
	fairAlone  = 0.8 // a part from which on the program is alone
	fairStep   = 0.9 // of the way to a half: at least what a greedy neighbour must be met with
	fairSmooth = 0.5 // of a new part that counts
)

// say notes what the server says is left, in the response to a call of so many permits.
func (f *fair) say(left, permits float64) {
	f.own += permits
	f.gone = left < permits
	used := f.left - left
	if used < 0 { // a new window
		f.left, f.own = left, 0
		return
	}
	if used < fairSample*permits {
		return
	}
	part := min(f.own/used, 1)
	if f.part == 0 {
		f.part = part
	}
	f.part += fairSmooth * (part - f.part)
	f.left, f.own = left, 0
}

// others reports whether nothing is left because other programs have used it: a refusal says nothing
// of this one's rate.
func (f *fair) others() bool { return f.gone && f.part > 0 && f.part < fairAlone }

// share returns which part of what is left this program should use.
func (f *fair) share() float64 {
	if f.part == 0 || f.part >= fairAlone {
		return 1
	}
	return f.part + fairStep*(0.5-f.part)
}
