package line

import "slices"

// A Queue is a list that loses items in front.
type Queue[T any] struct {
	list  []T
	first int
}

func (q *Queue[T]) All() []T { return q.list[q.first:] }

func (q *Queue[T]) Len() int { return len(q.list) - q.first }

func (q *Queue[T]) Push(item T) { q.list = append(q.list, item) }

func (q *Queue[T]) Insert(i int, item T) { q.list = slices.Insert(q.list, q.first+i, item) }

func (q *Queue[T]) Drop(n int) {
	clear(q.All()[:n]) // for the garbage collector
	if q.first += n; 2*q.first < len(q.list) {
		return
	}
	const few = 1024
	left := q.All()
	if cap(q.list) > few && len(left) < cap(q.list)/8 {
		q.list = append([]T(nil), left...) // slices.Clone keeps the array of an empty list
	} else {
		q.list = slices.Delete(q.list, 0, q.first)
	}
	q.first = 0
}

func (q *Queue[T]) Cut(n int) { q.list = q.list[:q.first+n] }

func (q *Queue[T]) Delete(gone func(T) bool) {
	q.list = q.list[:q.first+len(slices.DeleteFunc(q.All(), gone))]
}
