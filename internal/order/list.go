package order

// A list holds entries by number; an entry may be in a list of each kind. The zero value is empty, of kind 0.
type list[T any] struct {
	kind       uint8
	head, tail *Entry[T]
	length     int
}

const kinds = 2

type link[T any] struct{ next, previous *Entry[T] }

func (l *list[T]) next(e *Entry[T]) *Entry[T] { return e.links[l.kind].next }

func (l *list[T]) insert(e *Entry[T]) {
	before := l.tail
	for before != nil && before.Rank.Number > e.Rank.Number {
		before = before.links[l.kind].previous
	}
	after := l.head
	if before != nil {
		after = l.next(before)
	}
	e.links[l.kind] = link[T]{after, before}
	l.join(before, e)
	l.join(e, after)
	l.length++
}

func (l *list[T]) remove(e *Entry[T]) {
	own := &e.links[l.kind]
	l.join(own.previous, own.next)
	*own = link[T]{}
	l.length--
}

// earlier reports whether the entry at that index came before e.
func (l *list[T]) earlier(index int, e *Entry[T]) bool {
	if index < 0 || index >= l.length || l.tail.Rank.Number < e.Rank.Number {
		return index >= 0
	}
	at := l.head
	for ; index > 0 && at.Rank.Number < e.Rank.Number; index-- {
		at = l.next(at)
	}
	return at.Rank.Number < e.Rank.Number
}

// join makes two entries neighbours; nil is the end.
func (l *list[T]) join(a, b *Entry[T]) {
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
