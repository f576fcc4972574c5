package inbound

import (
	"net/netip"
	"strings"
)

// Forwarded is [XForwardedFor] for the header of RFC 7239, where each proxy writes for=203.0.113.7 or
// for="[2001:db8::1]:4711". A trusted proxy that wrote no address (no for, two of them, unknown, _hidden) is an
// error.
func Forwarded(trusted []netip.Prefix, opts ...AddressOption) (Address, error) {
	return forwarded.pastProxies("Forwarded", trusted, opts)
}

// ForwardedHops is [XForwardedForHops] for the header of RFC 7239.
func ForwardedHops(proxies int, opts ...AddressOption) (Address, error) {
	return forwarded.pastHops("ForwardedHops", proxies, opts)
}

var forwarded = trail{
	header:    "Forwarded",
	lastComma: func(s string) int { return lastUnquoted(s, ',') },
	parse:     forwardedNode,
}

// lastUnquoted returns -1 if the separator is not there. It reads from the right, where the nearest proxy has written,
// so quotes that the client left open change nothing.
func lastUnquoted(s string, separator byte) int {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case '"':
			if slashes := i - len(strings.TrimRight(s[:i], `\`)); slashes%2 == 0 {
				quoted = !quoted
			}
		case separator:
			if !quoted {
				return i
			}
		}
	}
	return -1
}

// forwardedNode accepts exactly one parameter "for".
func forwardedNode(entry string) (addr netip.Addr, ok bool) {
	for last := 0; last >= 0; {
		last = lastUnquoted(entry, ';')
		name, value, _ := strings.Cut(entry[last+1:], "=")
		if entry = entry[:max(0, last)]; !strings.EqualFold(strings.TrimSpace(name), "for") {
			continue
		}
		if ok { // a second one: there is no telling which one is right
			return netip.Addr{}, false
		}
		if addr, ok = parseAddress(unquote(strings.TrimSpace(value))); !ok {
			return netip.Addr{}, false
		}
	}
	return addr, ok
}

// unquote returns "" for a malformed quoted string, and other text as it is. No address ends with a backslash.
func unquote(s string) string {
	inner, quoted := strings.CutPrefix(s, `"`)
	if !quoted {
		return s
	}
	inner, closed := strings.CutSuffix(inner, `"`)
	if !closed || strings.HasSuffix(inner, `\`) {
		return ""
	}
	return strings.ReplaceAll(inner, `\`, "")
}
