package inbound

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// XForwardedFor finds the client's address: the first that is not a trusted proxy's, from the connection through
// X-Forwarded-For from the right; if all are trusted, the leftmost. A trusted proxy that wrote no address is an
// error.
func XForwardedFor(trusted []netip.Prefix, opts ...AddressOption) (Address, error) {
	return xForwardedFor.pastProxies("XForwardedFor", trusted, opts)
}

// XForwardedForHops is the address that the first of a number of proxies (at least 1) wrote into X-Forwarded-For: with
// 1 the last address. Requests must come only through all of them, and each must add an address.
func XForwardedForHops(proxies int, opts ...AddressOption) (Address, error) {
	return xForwardedFor.pastHops("XForwardedForHops", proxies, opts)
}

// A trail is a header to which each proxy adds, on the right, the address that a request came from.
type trail struct {
	header    string
	lastComma func(string) int // that separates two entries, -1 if there is one entry
	parse     func(entry string) (netip.Addr, bool)
}

var xForwardedFor = trail{
	header:    "X-Forwarded-For",
	lastComma: func(s string) int { return strings.LastIndexByte(s, ',') },
	parse:     parseAddress,
}

func (t *trail) pastProxies(name string, trusted []netip.Prefix, opts []AddressOption) (Address, error) {
	if len(trusted) == 0 {
		return nil, valueError(name, trusted, "at least 1 network of proxies")
	}
	trusted = slices.Clone(trusted)
	for _, p := range trusted {
		if !p.IsValid() || p.Addr().Is4In6() {
			return nil, valueError(name, p, "networks of IPv4 or IPv6 addresses")
		}
	}
	isProxy := func(a netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	return newAddress(opts, func(r *http.Request) (netip.Addr, error) {
		client, err := peer(r)
		for entry := range t.fromTheRight(r) {
			if err != nil || !isProxy(client) {
				break
			}
			addr, ok := t.parse(entry)
			if !ok {
				return addr, fmt.Errorf("%w: the proxy %v forwards for %s", errNoAddress, client, shorten(entry))
			}
			client = addr
		}
		return client, err
	})
}

func (t *trail) pastHops(name string, proxies int, opts []AddressOption) (Address, error) {
	if proxies < 1 {
		return nil, valueError(name, proxies, "at least 1 proxy")
	}
	return newAddress(opts, func(r *http.Request) (netip.Addr, error) {
		hop := 0
		for entry := range t.fromTheRight(r) {
			if hop++; hop < proxies {
				continue
			}
			addr, ok := t.parse(entry)
			if !ok {
				return netip.Addr{}, fmt.Errorf("%w: proxy %d forwards for %s", errNoAddress, hop, shorten(entry))
			}
			return addr, nil
		}
		return netip.Addr{}, fmt.Errorf("%w: %d addresses in %s, and %d proxies", errNoAddress, hop, t.header, proxies)
	})
}

// fromTheRight yields the header's entries, over all lines, the last first, and reads no further than asked.
func (t *trail) fromTheRight(r *http.Request) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, line := range slices.Backward(r.Header[t.header]) {
			for more := true; more; {
				entry := line
				comma := t.lastComma(line)
				if more = comma >= 0; more {
					entry, line = line[comma+1:], line[:comma]
				}
				if !yield(entry) {
					return
				}
			}
		}
	}
}
