package queue

// A list holds places by number. A place may be in one list of each kind. The zero value is empty, of kind 0.
type list struct {
	kind       uint8
	head, tail *Place
	length     int
}

const kinds = 2

type link struct{ next, previous *Place }

func (l *list) next(p *Place) *Place { return p.links[l.kind].next }

// insert adds a place behind those with a smaller number.
func (l *list) insert(p *Place) {
	before := l.tail
	for before != nil && before.rank.Number > p.rank.Number {
		before = before.links[l.kind].previous
	}
	after := l.head
	if before != nil {
		after = l.next(before)
	}
	p.links[l.kind] = link{after, before}
	l.join(before, p)
	l.join(p, after)
	l.length++
}

func (l *list) remove(p *Place) {
	own := &p.links[l.kind]
	l.join(own.previous, own.next)
	*own = link{}
	l.length--
}

// join makes two places neighbours; nil is the end.
func (l *list) join(a, b *Place) {
	if a == nil {
		l.head = b
	} else {
		a.links[l.kind].next = b
	}
	if b == nil {
		l.tail = a
	} else {
		b.links[l.kind].previous = a
	}
}
