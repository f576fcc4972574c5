package queue

import "cmp"

// A Heap holds nodes by key, then by number. The zero value is empty.
type Heap[K cmp.Ordered, T any] []*Node[K, T]

// A Node is an element of at most one Heap, and stands for Of.
type Node[K cmp.Ordered, T any] struct {
	Key    K
	Number uint64
	Of     *T
	heap   *Heap[K, T]
	index  int
}

// Put puts a node into the heap, or where it belongs after a change.
func (h *Heap[K, T]) Put(n *Node[K, T]) {
	if n.heap != h {
		n.Leave()
		n.heap, n.index = h, len(*h)
		*h = append(*h, n)
	}
	h.fix(n.index)
}

// Leave takes a node out of its heap, if any.
func (n *Node[K, T]) Leave() {
	h := n.heap
	if h == nil {
		return
	}
	i, last := n.index, len(*h)-1
	h.swap(i, last)
	(*h)[last], *h = nil, (*h)[:last]
	if n.heap = nil; i < last {
		h.fix(i)
	}
}

func (h Heap[K, T]) fix(i int) {
	for i > 0 && h.less(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		least := 2*i + 1
		if least+1 < len(h) && h.less(least+1, least) {
			least++
		}
		if least >= len(h) || !h.less(least, i) {
			return
		}
		h.swap(i, least)
		i = least
	}
}

func (h Heap[K, T]) less(i, j int) bool {
	a, b := h[i], h[j]
	return a.Key < b.Key || a.Key == b.Key && a.Number < b.Number
}

func (h Heap[K, T]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Index returns the node's index in its heap.
func (n *Node[K, T]) Index() int { return n.index }
