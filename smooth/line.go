package smooth

// A Line is the price of stored permits in numbers: up to Threshold each costs Base,
// and from there on the price rises in a straight line, by Slope for each permit
// more. It is numbers and no func, so that it can also be sent to where the arithmetic
// of a shared limiter is done, a Redis script.
//
// With a Base of 500 ms, a Threshold of 4 and a Slope of 250 ms, the sixth stored
// permit costs the area under the line between 5 and 6: 875 ms.
type Line struct {
	Base      float64 // nanoseconds
	Threshold float64 // permits
	Slope     float64 // nanoseconds per permit
}

// Cost returns the cost, in nanoseconds, of taking permits out of a store that
// holds stored of them: a [Curve]'s Cost.
func (l *Line) Cost(stored, take float64) float64 {
	over := stored - l.Threshold
	switch {
	case over <= 0:
		return float64(l.Base * take)
	case take <= over: // a trapezium, the price at each of its sides being Base + Slope*permits
		return float64(take * (l.Base + float64(l.Slope*float64(over-take*0.5))))
	default:
		return float64(over*(l.Base+float64(l.Slope*float64(over*0.5)))) + float64(l.Base*(take-over))
	}
}
