package bykey

// A Guard decides which new keys are remembered, so that no network takes the room of all others. Its methods are
// called at the same time, and under a lock: they must be quick, and must not use the limiters.
type Guard[K comparable] interface {
	// Admits reports whether a new key may be remembered beside that many. If not: ErrTooManyKeys.
	Admits(key K, remembered int) bool
	// Count is called for each key that is remembered (by 1) or dropped (by -1).
	Count(key K, by int)
}

// admits asks the guard. Refused calls sweep, too: there may be no others.
func (k *Limiters[K]) admits(key K) bool {
	if k.guard.Admits(key, k.Len()) {
		return true
	}
	if k.refused.Add(1)%sweepEvery == 0 {
		k.sweepSome()
	}
	return false
}

func (k *Limiters[K]) counted(key K, by int) {
	if k.guard != nil {
		k.guard.Count(key, by)
	}
}
