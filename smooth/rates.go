package smooth

import "slices"

// A pastRate says until when a curve was today's.
type pastRate struct {
	curve *Curve
	until int64
}

// maxRates bounds the memory of a limiter. Time that comes back from before so many
// changes of the rate stores nothing.
const maxRates = 8

// worth returns the permits that idle time until now stores, in terms of today's.
func (l *Ledger) worth(s stretch) (permits float64) {
	begin := max(s.begin, l.back.known)
	for _, r := range l.back.rates {
		if end := min(s.end, r.until); begin < end {
			permits += rescale(float64(float64(end-begin)*r.curve.Refill), r.curve, l.curve)
			begin = end
		}
	}
	if begin < s.end {
		permits += float64(float64(s.end-begin) * l.curve.Refill)
	}
	return permits
}

// changed returns when the rate was, last.
func (b *back) changed() int64 {
	if len(b.rates) == 0 {
		return b.known
	}
	return b.rates[len(b.rates)-1].until
}

// rateChanged brings all permits into terms of another curve, from now on.
func (b *back) rateChanged(now int64, from, to *Curve) {
	if len(b.rates) == maxRates {
		b.known = b.rates[0].until
		b.rates = slices.Delete(b.rates, 0, 1)
	}
	b.rates = append(b.rates, pastRate{from, now})
	b.aside = rescale(b.aside, from, to)
	for i := range b.loans {
		b.loans[i].permits = rescale(b.loans[i].permits, from, to)
	}
	for i := range b.returns {
		b.returns[i].permits = rescale(b.returns[i].permits, from, to)
	}
}

// newEra keeps only the time for sale.
func (b *back) newEra(now int64) {
	*b = back{offers: b.offers, known: now}
}
