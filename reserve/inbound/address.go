package inbound

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/nextfree/pace/internal/invalid"
)

var errNoAddress = errors.New("inbound: no client address")

// An Address is a key function: the address of a request's client, or an error. IPv6 addresses are cut to their network
// ([IPv6Prefix]); IPv4 addresses in IPv6 (mapped, or 64:ff9b::/96, RFC 6052) become IPv4. Zones are dropped.
type Address = func(*http.Request) (netip.Addr, error)

type AddressOption func(*addresses) error

// IPv6Prefix sets how many bits of an IPv6 address tell clients apart, 1 to 128. Default: 64, the smallest network
// that providers hand out.
func IPv6Prefix(bits int) AddressOption {
	return func(a *addresses) error {
		if bits < 1 || bits > 128 {
			return valueError("IPv6Prefix", bits, "1 to 128 bits")
		}
		a.bits = bits
		return nil
	}
}

// RemoteAddr is the address at the other end of the connection, for programs without a proxy.
func RemoteAddr(opts ...AddressOption) (Address, error) {
	return newAddress(opts, peer)
}

// TrustedHeader is the address in a header that the proxy overwrites: CF-Connecting-IP, X-Real-IP. More or fewer values
// than a single one are an error.
func TrustedHeader(name string, opts ...AddressOption) (Address, error) {
	if name == "" {
		return nil, valueError("TrustedHeader", "", "the name of a header")
	}
	name = http.CanonicalHeaderKey(name)
	return newAddress(opts, func(r *http.Request) (netip.Addr, error) {
		values := r.Header[name]
		if len(values) != 1 {
			return netip.Addr{}, fmt.Errorf("%w: %d values of %s", errNoAddress, len(values), name)
		}
		addr, ok := parseAddress(values[0])
		if !ok {
			return netip.Addr{}, fmt.Errorf("%w: %s is %s", errNoAddress, name, shorten(values[0]))
		}
		return addr, nil
	})
}

type addresses struct{ bits int }

func newAddress(opts []AddressOption, find func(*http.Request) (netip.Addr, error)) (Address, error) {
	a := addresses{bits: 64}
	if err := invalid.Apply(valueError, &a, opts); err != nil {
		return nil, err
	}
	return func(r *http.Request) (netip.Addr, error) {
		addr, err := find(r)
		if err == nil && translated.Contains(addr) {
			all := addr.As16()
			addr = netip.AddrFrom4([4]byte(all[12:]))
		}
		if err != nil || addr.Is4() || a.bits == 128 {
			return addr, err
		}
		network, err := addr.Prefix(a.bits)
		return network.Addr(), err
	}, nil
}

// translated holds all of IPv4, as NAT64 writes it (RFC 6052, section 2.1).
var translated = netip.MustParsePrefix("64:ff9b::/96")

func peer(r *http.Request) (netip.Addr, error) {
	addr, ok := parseAddress(r.RemoteAddr)
	if !ok {
		return addr, fmt.Errorf("%w: the connection is from %s", errNoAddress, shorten(r.RemoteAddr))
	}
	return addr, nil
}

// parseAddress also accepts a port and brackets, as some proxies write them.
func parseAddress(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if host, bracket := strings.CutPrefix(s, "["); bracket {
		s, _, _ = strings.Cut(host, "]")
	} else if strings.Count(s, ":") == 1 {
		s, _, _ = strings.Cut(s, ":")
	}
	addr, err := netip.ParseAddr(s)
	return addr.Unmap().WithZone(""), err == nil
}

func shorten(s string) string {
	const longest = 60
	if len(s) > longest {
		return fmt.Sprintf("%.*q...", longest, s)
	}
	return fmt.Sprintf("%q", s)
}
