package line

import "iter"

func (l *Line[S]) NextFree(now int64) int64 { return l.Behind(now, nil, 1) }

func (l *Line[S]) Promised(now int64) (last int64, waits bool) {
	l.kind.Advance(now)
	return l.ToLimiter(l.Last().When()), l.Len() > 0
}

func (l *Line[S]) Behind(now int64, ahead iter.Seq[int], permits int) int64 {
	if _, largest := l.kind.Size(); permits > largest {
		return Never
	}
	l.kind.Advance(now)
	last := l.Last()
	if ahead != nil {
		defer l.cut(l.Len())
		last = l.behind(last, ahead)
	}
	return l.ToLimiter(l.kind.After(last, int64(permits), Never).When())
}

func (l *Line[S]) behind(last S, ahead iter.Seq[int]) S {
	for permits := range ahead {
		last = l.kind.After(last, int64(permits), Never)
		l.wait.Push(request[S]{permits: int64(permits), latest: Never, state: last})
		l.known++
	}
	return last
}

func (l *Line[S]) cut(n int) {
	l.wait.Cut(n)
	l.known = n
}
