package queue

import (
	"cmp"
	"container/heap"
)

// A heapOf holds nodes by key, then by number. The zero value is empty.
type heapOf[K cmp.Ordered, T any] []*node[K, T]

// A node is an element of at most one heap, and stands for of.
type node[K cmp.Ordered, T any] struct {
	key    K
	number uint64
	of     *T
	heap   *heapOf[K, T]
	index  int
}

// put puts a node into the heap, or where it belongs after a change.
func (h *heapOf[K, T]) put(n *node[K, T]) {
	if n.heap == h {
		heap.Fix(h, n.index)
		return
	}
	n.leave()
	n.heap = h
	heap.Push(h, n)
}

// leave takes a node out of its heap, if any.
func (n *node[K, T]) leave() {
	if n.heap != nil {
		heap.Remove(n.heap, n.index)
		n.heap = nil
	}
}

func (h heapOf[K, T]) Len() int { return len(h) }

func (h heapOf[K, T]) Less(i, j int) bool {
	a, b := h[i], h[j]
	return a.key < b.key || a.key == b.key && a.number < b.number
}

func (h heapOf[K, T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *heapOf[K, T]) Push(n any) {
	n.(*node[K, T]).index = len(*h)
	*h = append(*h, n.(*node[K, T]))
}

func (h *heapOf[K, T]) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	return n
}
