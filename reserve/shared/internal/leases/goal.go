package leases

// fewest permits in a horizon are worth a lease. Fewer are asked for as they are needed.
const fewest = 8

// Where there are too few permits, how many of them a process asks for decides its share.
const (
	// eager is how many permits a process asks for, for each that its callers wait for, when half a horizon is sold
	// already. With more, the leases are longer and the shares of the processes less even.
	eager = 4
	// reserved makes the leases of processes whose callers only try shorter, the further ahead Redis is sold. At a tenth
	// of a horizon they are a quarter as long. Callers who try use a lease more slowly than Redis sells it, and while they
	// use the rest, another lease is in use as well.
	reserved = 30
	// contended is the part of a horizon that such a process asks for at most, if more than 2 % of its callers' demand was
	// refused. Take 20,000/s, four processes and a horizon of 100 ms. With an eighth, every 100 ms hold the rate to within
	// 2.0 %, with a sixteenth to within 1.6 %, and with neither of both rules to within 14 %.
	contended = 1. / 16
)

// goal returns how many permits the process should hold: as many as its callers asked for in a horizon. Where callers
// wait, that says little. They use whatever they get, and as a process buys what it uses, any shares would stay as they
// are. There a process asks for so many permits for each that is waited for, fewer the further ahead Redis is sold.
// That number is the same for all processes.
func (b *Buyer) goal(now int64, pool *pool) int64 {
	missed := amount(b.refused.Swap(0))
	pool.demand.add(now, b.horizon, missed)
	pool.missed.add(now, b.horizon, missed)
	goal := min(pool.demand.over(now, b.horizon), b.most())
	if goal < fewest {
		return 0
	}
	if waiting := pool.waiting(now) + b.line.Load(); waiting > 0 {
		if pool.sold > 0 {
			goal = min(goal, eager*float64(waiting)*max(0, float64(b.horizon-pool.sold))/float64(pool.sold))
		}
		return int64(goal)
	}
	share := 1.0
	if pool.debt > 0 {
		share = 1 / (1 + reserved*float64(pool.sold)/float64(b.horizon))
	}
	if pool.missed.over(now, b.horizon) > goal/50 {
		share = min(share, contended)
	}
	return int64(max(fewest, goal*share))
}

// A demand counts the permits that were asked for in the last horizon.
type demand struct {
	begin           int64
	before, current float64 // in the horizon up to begin, and since
}

func (d *demand) add(now, horizon int64, permits int) {
	d.roll(now, horizon)
	d.current += float64(permits)
}

// over returns how many were asked for in the last horizon, as if the demand of the horizon before had been even.
func (d *demand) over(now, horizon int64) float64 {
	d.roll(now, horizon)
	return d.current + d.before*(1-float64(now-d.begin)/float64(horizon))
}

func (d *demand) roll(now, horizon int64) {
	switch passed := now - d.begin; {
	case passed >= 2*horizon:
		*d = demand{begin: now}
	case passed >= horizon:
		*d = demand{begin: d.begin + horizon, before: d.current}
	}
}
