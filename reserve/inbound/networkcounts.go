package inbound

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"sync/atomic"
)

// networkCounts count the remembered keys of each network, by hash: see [PerKey].
type networkCounts[K comparable] struct {
	address           func(K) (netip.Addr, bool)
	seed              maphash.Seed
	crowded           int // from so many keys on
	mostNear, mostFar int32
	near, far         [1 << 14]atomic.Int32
}

func newNetworkCounts[K comparable](address func(K) (netip.Addr, bool), maxKeys int) *networkCounts[K] {
	return &networkCounts[K]{
		address:  address,
		seed:     maphash.MakeSeed(),
		crowded:  maxKeys - maxKeys/4,
		mostNear: int32(min(max(maxKeys/4096, 8), 1<<30)),
		mostFar:  int32(min(max(maxKeys/64, 64), 1<<30)),
	}
}

// Admits implements [bykey.Guard].
func (c *networkCounts[K]) Admits(key K, remembered int) bool {
	if remembered < c.crowded {
		return true
	}
	near, far := c.counters(key)
	return near == nil || near.Load() < c.mostNear && far.Load() < c.mostFar
}

// Count implements [bykey.Guard].
func (c *networkCounts[K]) Count(key K, by int) {
	if near, far := c.counters(key); near != nil {
		near.Add(int32(by))
		far.Add(int32(by))
	}
}

func (c *networkCounts[K]) counters(key K) (near, far *atomic.Int32) {
	addr, ok := c.address(key)
	if !ok {
		return nil, nil
	}
	n, f := networkNumbers(addr)
	const mask = uint64(len(c.near) - 1)
	return &c.near[maphash.Comparable(c.seed, n)&mask], &c.far[maphash.Comparable(c.seed, f)&mask]
}

// networkNumbers are hashed faster than networksOf.
func networkNumbers(a netip.Addr) (near, far uint64) {
	if a.Is4() {
		b := a.As4()
		all := uint64(binary.BigEndian.Uint32(b[:]))
		return 1<<63 | all>>8, 1<<63 | all>>16 // no /48 or /32 of IPv6 has that bit
	}
	b := a.As16()
	all := binary.BigEndian.Uint64(b[:8])
	return all >> 16, all >> 32
}
