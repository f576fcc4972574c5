package queue

// A List holds places by number. A place may be in one list of each kind. The zero value is empty, of kind 0.
type List struct {
	Kind       uint8
	head, tail *Place
	length     int
}

const kinds = 2

type link struct{ next, previous *Place }

// Head returns the first place, or nil. So do Tail and Next.
func (l *List) Head() *Place         { return l.head }
func (l *List) Tail() *Place         { return l.tail }
func (l *List) Next(p *Place) *Place { return p.links[l.Kind].next }

func (l *List) Len() int { return l.length }

// Insert adds a place behind those with a smaller number.
func (l *List) Insert(p *Place) {
	before := l.tail
	for before != nil && before.rank.Number > p.rank.Number {
		before = before.links[l.Kind].previous
	}
	after := l.head
	if before != nil {
		after = l.Next(before)
	}
	p.links[l.Kind] = link{after, before}
	l.join(before, p)
	l.join(p, after)
	l.length++
}

func (l *List) Delete(p *Place) {
	own := &p.links[l.Kind]
	l.join(own.previous, own.next)
	*own = link{}
	l.length--
}

// join makes two places neighbours; nil is the end.
func (l *List) join(a, b *Place) {
	if a == nil {
		l.head = b
	} else {
		a.links[l.Kind].next = b
	}
	if b == nil {
		l.tail = a
	} else {
		b.links[l.Kind].previous = a
	}
}

// Drop takes the head off a copy of a list.
func (l *List) Drop() { l.head = l.Next(l.head) }
