package keyed

import "github.com/nextfree/pace/reserve/internal/keyhooks"

// Guard implements [keyhooks.Limiters].
func (k inside[K]) Guard(guard keyhooks.Guard[K]) { k.guard = guard }

// Own implements [keyhooks.Limiters].
func (k inside[K]) Own(own func(K) K) { k.own = own }

// admits reports whether a new key may be remembered, as far as the guard is concerned. Each call
// that finds it may not looks at two entries on average, as other calls do: there may be no others.
func (k *Limiters[K]) admits(key K) bool {
	if k.guard.Admits(key, k.Len()) {
		return true
	}
	if k.refused.Add(1)%sweepEvery == 0 {
		k.sweepSome()
	}
	return false
}

// counted tells the guard.
func (k *Limiters[K]) counted(key K, by int) {
	if k.guard != nil {
		k.guard.Count(key, by)
	}
}
