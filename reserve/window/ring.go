package window

// A ring holds the times at which permits were granted, in order, each with the
// number of permits up to it: so how many there are in any stretch is one
// subtraction. A time is there once, however many permits it has, and goes when it has none.
type ring struct {
	times  []moment // in a circle; their number is a power of two
	first  int      // the oldest, in times
	length int
	before uint64 // the permits before the oldest
}

// A moment is a time and the number of all permits ever granted up to it, modulo
// 2^64: only differences are used.
type moment struct {
	at      int64
	through uint64
}

// time returns the i-th time, counted from the oldest.
func (r *ring) time(i int) *moment { return &r.times[(r.first+i)&(len(r.times)-1)] }

// until returns the number of permits before the i-th time.
func (r *ring) until(i int) uint64 {
	if i == 0 {
		return r.before
	}
	return r.time(i - 1).through
}

// after returns the index of the first time after t.
func (r *ring) after(t int64) int {
	low, high := 0, r.length
	if high == 0 || r.time(high-1).at <= t {
		return high
	}
	if r.time(0).at > t {
		return 0
	}
	for low < high {
		middle := int(uint(low+high) >> 1)
		if r.time(middle).at <= t {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// permitsAt returns how many permits the time has.
func (r *ring) permitsAt(t int64) uint64 {
	i := r.after(t)
	if i == 0 || r.time(i-1).at != t {
		return 0
	}
	return r.until(i) - r.until(i-1)
}

// add adds permits at a time. It passes over the times after that: none, for who
// goes to the end of the queue.
func (r *ring) add(t int64, permits uint64) {
	i := r.after(t)
	if i == 0 || r.time(i-1).at != t {
		if r.length == len(r.times) {
			r.grow()
		}
		r.length++
		for j := r.length - 1; j > i; j-- {
			*r.time(j) = *r.time(j - 1)
		}
		*r.time(i) = moment{at: t, through: r.until(i)}
		i++
	}
	for i--; i < r.length; i++ {
		r.time(i).through += permits
	}
}

// remove takes away that many of the permits of a time, which has them.
func (r *ring) remove(t int64, permits uint64) {
	i := r.after(t) - 1
	left := r.permitsAt(t) - permits
	for j := i; j < r.length; j++ {
		r.time(j).through -= permits
	}
	if left > 0 {
		return
	}
	for j := i; j < r.length-1; j++ {
		*r.time(j) = *r.time(j + 1)
	}
	r.length--
}

// forget drops the times up to t.
func (r *ring) forget(t int64) {
	for r.length > 0 && r.time(0).at <= t {
		r.before = r.time(0).through
		r.first = (r.first + 1) & (len(r.times) - 1)
		r.length--
	}
}

// grow doubles the room.
func (r *ring) grow() {
	times := make([]moment, max(4, 2*len(r.times)))
	n := copy(times, r.times[r.first:])
	copy(times[n:], r.times[:r.first])
	r.times, r.first = times, 0
}
