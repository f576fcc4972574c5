package inbound

import (
	"context"
	"errors"
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/bykey"
	"github.com/nextfree/pace/reserve/keyed"
)

// sharedLimiters are a [PerKey] tier's: one for each key while there is room in own, then one for its /24 or /48.
// Beyond that, or without an address, a hash of the /16 or /32, or of the key, chooses one of 1024.
type sharedLimiters[K comparable] struct {
	own      *bykey.Limiters[K]
	networks *bykey.Limiters[netip.Prefix]
	groups   *bykey.Limiters[uint64]
	address  func(K) (netip.Addr, bool)
	seed     maphash.Seed
	shared   atomic.Uint64 // requests that got no limiter of their own
}

const manyGroups = 1024

func newSharedLimiters[K comparable](policy *reserve.Policy, maxKeys int) *sharedLimiters[K] {
	c := &sharedLimiters[K]{
		networks: limitersOf[netip.Prefix](policy, max(maxKeys/64, 64)),
		groups:   limitersOf[uint64](policy, 2*manyGroups),
		address:  addressIn[K](),
		seed:     maphash.MakeSeed(),
	}
	own := bykey.Settings[K]{Always: policy, MaxKeys: maxKeys, Own: owned[K]()}
	if c.address != nil {
		own.Guard = newNetworkCounts(c.address, maxKeys)
	}
	c.own = bykey.New(own)
	return c
}

func limitersOf[K comparable](policy *reserve.Policy, maxKeys int) *bykey.Limiters[K] {
	return bykey.New(bykey.Settings[K]{Always: policy, MaxKeys: maxKeys})
}

func (s *sharedLimiters[K]) take(
	ctx context.Context, key K, n int, maxWait time.Duration, used bool,
) (t bykey.Taken, err error) {
	t, err = s.own.Take(ctx, key, n, maxWait, used)
	if !errors.Is(err, keyed.ErrTooManyKeys) {
		return
	}
	s.shared.Add(1)
	near, group, ok := s.neighbours(key)
	if ok {
		t, err = s.networks.Take(ctx, near, n, maxWait, used)
	}
	if errors.Is(err, keyed.ErrTooManyKeys) {
		t, err = s.groups.Take(ctx, group, n, maxWait, used)
	}
	return
}

func (s *sharedLimiters[K]) peek(key K, n int) (wait time.Duration, err error) {
	wait, err = s.own.Peek(key, n)
	if !errors.Is(err, keyed.ErrTooManyKeys) {
		return
	}
	near, group, ok := s.neighbours(key)
	if ok {
		wait, err = s.networks.Peek(near, n)
	}
	if errors.Is(err, keyed.ErrTooManyKeys) {
		wait, err = s.groups.Peek(group, n)
	}
	return
}

func (s *sharedLimiters[K]) neighbours(key K) (near netip.Prefix, group uint64, ok bool) {
	group = maphash.Comparable(s.seed, key)
	if s.address != nil {
		if addr, ok := s.address(key); ok {
			var far netip.Prefix
			near, far = networksOf(addr)
			return near, maphash.Comparable(s.seed, far) % manyGroups, true
		}
	}
	return near, group % manyGroups, false
}

// networksOf returns the network of a customer, /24 or /48, and of a small provider, /16 or /32.
func networksOf(a netip.Addr) (near, far netip.Prefix) {
	nearBits, farBits := 48, 32
	if a.Is4() {
		nearBits, farBits = 24, 16
	}
	near, _ = a.Prefix(nearBits)
	far, _ = a.Prefix(farBits)
	return near, far
}

// addressIn returns nil if keys of that type have no address.
func addressIn[K comparable]() func(K) (netip.Addr, bool) {
	var key K
	switch any(key).(type) {
	case netip.Addr:
		return func(key K) (netip.Addr, bool) { return any(key).(netip.Addr), true }
	case addressed:
		return func(key K) (netip.Addr, bool) { return any(key).(addressed).address() }
	}
	return nil
}

type addressed interface{ address() (netip.Addr, bool) }

func (p Pair[A, B]) address() (netip.Addr, bool) {
	if find := addressIn[A](); find != nil {
		if a, ok := find(p.First); ok {
			return a, true
		}
	}
	if find := addressIn[B](); find != nil {
		return find(p.Second)
	}
	return netip.Addr{}, false
}
