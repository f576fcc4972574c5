package inbound

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"
	"net/netip"
	"reflect"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/nextfree/pace/internal/bykey"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// A client is a key, by hashes: however long a URL is, none is kept.
type client struct {
	key       uint64
	near, far uint16 // of the networks of its address, 1 to manyGroups; 0: it has none
}

const (
	manyGroups     = 1 << 14
	defaultMaxKeys = 1 << 20
)

// identifier returns a function that finds a request's key, and what it is remembered by.
func identifier[K comparable](key func(*http.Request) (K, error)) func(*http.Request) (K, client, error) {
	seed := maphash.MakeSeed()
	offset, hasAddress := addressIn(reflect.TypeFor[K]())
	group := func(of netip.Addr, bits int) uint16 {
		network, _ := of.Prefix(bits)
		return 1 + uint16(maphash.Comparable(seed, network)%manyGroups)
	}
	return func(r *http.Request) (k K, c client, err error) {
		if k, err = key(r); err != nil {
			return k, c, err
		}
		c.key = maphash.Comparable(seed, k)
		if !hasAddress {
			return k, c, nil
		}
		switch addr := *(*netip.Addr)(unsafe.Add(unsafe.Pointer(&k), offset)); {
		case addr.Is4():
			c.near, c.far = group(addr, 24), group(addr, 16)
		case addr.Is6():
			c.near, c.far = group(addr, 48), group(addr, 32)
		}
		return k, c, nil
	}
}

func addressIn(t reflect.Type) (offset uintptr, ok bool) {
	if t == reflect.TypeFor[netip.Addr]() {
		return 0, true
	}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if at, ok := addressIn(t.Field(i).Type); ok {
				return t.Field(i).Offset + at, true
			}
		}
	}
	return 0, false
}

// clients are a [PerKey] tier's limiters: one for each client while there is room, and one for each group.
type clients struct {
	own    *bykey.Limiters[client]
	groups *bykey.Limiters[uint16]
	shared atomic.Uint64 // requests that got a group's limiter
}

func newClients(policy *reserve.Policy, maxKeys int) *clients {
	return &clients{
		own: bykey.New(bykey.Settings[client]{
			Always: policy, MaxKeys: maxKeys, Guard: &networkCounts{
				crowded:  maxKeys - maxKeys/4,
				mostNear: int32(min(max(maxKeys/4096, 8), 1<<30)),
				mostFar:  int32(min(max(maxKeys/64, 64), 1<<30)),
			},
		}),
		groups: bykey.New(bykey.Settings[uint16]{Always: policy, MaxKeys: 2 * manyGroups}),
	}
}

func (c *clients) take(
	ctx context.Context, of client, n int, maxWait time.Duration, used bool,
) (t limit.Taken, err error) {
	if t, err = c.own.Take(ctx, of, n, maxWait, used); errors.Is(err, keyed.ErrTooManyKeys) {
		c.shared.Add(1)
		t, err = c.groups.Take(ctx, of.group(), n, maxWait, used)
	}
	return
}

func (c *clients) peek(of client, n int) (wait time.Duration, err error) {
	if wait, err = c.own.Peek(of, n); errors.Is(err, keyed.ErrTooManyKeys) {
		wait, err = c.groups.Peek(of.group(), n)
	}
	return wait, err
}

func (c client) group() uint16 {
	if c.near > 0 {
		return c.near
	}
	return 1 + uint16(c.key%manyGroups)
}

type networkCounts struct {
	crowded           int // from so many clients on
	mostNear, mostFar int32
	near, far         [1 + manyGroups]atomic.Int32
}

func (n *networkCounts) Admits(c client, remembered int) bool {
	return remembered < n.crowded || c.near == 0 ||
		n.near[c.near].Load() < n.mostNear && n.far[c.far].Load() < n.mostFar
}

func (n *networkCounts) Count(c client, by int) {
	n.near[c.near].Add(int32(by))
	n.far[c.far].Add(int32(by))
}
