package adapt

// fair finds a program's part of a quota that others use as well. What is left falls by what all use, so the own part
// is known. It moves towards a half, by a share of the distance: so all parts become equal. A greedy program leaves a
// quarter.
type fair struct {
	part float64 // of what is used, or 0 if unknown
	left float64 // what was left when own was 0
	own  float64 // permits used since
	gone bool    // nothing is left
}

const (
	fairSample = 16. // permits, to measure a part
	fairAlone  = 0.8 // a program with this part is alone
	fairStep   = 0.9 // of the way to a half
	fairSmooth = 0.5 // of a new part counts
)

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

// others reports whether other programs have used all: a refusal then proves nothing about the own rate.
func (f *fair) others() bool { return f.gone && f.part > 0 && f.part < fairAlone }

// share returns the part of what is left to use.
func (f *fair) share() float64 {
	if f.part == 0 || f.part >= fairAlone {
		return 1
	}
	return f.part + fairStep*(0.5-f.part)
}
