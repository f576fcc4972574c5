package order

import (
	"cmp"
	"container/heap"
)

// A Heap holds nodes by key, then by number.
type Heap[K cmp.Ordered, T any] []*Node[K, T]

// A Node is an element, of, of at most one heap.
type Node[K cmp.Ordered, T any] struct {
	Key    K
	Number uint64
	Of     *T
	heap   *Heap[K, T]
	index  int
}

// Put also moves a node whose key has changed.
func (h *Heap[K, T]) Put(n *Node[K, T]) {
	if n.heap == h {
		heap.Fix(h, n.index)
		return
	}
	n.Leave()
	n.heap = h
	heap.Push(h, n)
}

func (n *Node[K, T]) Leave() {
	if n.heap != nil {
		heap.Remove(n.heap, n.index)
		n.heap = nil
	}
}

func (h Heap[K, T]) Len() int { return len(h) }

func (h Heap[K, T]) Less(i, j int) bool {
	a, b := h[i], h[j]
	return a.Key < b.Key || a.Key == b.Key && a.Number < b.Number
}

func (h Heap[K, T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *Heap[K, T]) Push(n any) {
	n.(*Node[K, T]).index = len(*h)
	*h = append(*h, n.(*Node[K, T]))
}

func (h *Heap[K, T]) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	return n
}
