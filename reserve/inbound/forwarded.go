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

var forwarded = trail{header: "Forwarded", lastComma: lastUnquotedComma, parse: forwardedNode}

// lastUnquotedComma returns -1 if there is none. It reads from the right, where the nearest proxy has written, so
// quotes that the client left open change nothing.
func lastUnquotedComma(s string) int {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case '"':
			if slashes := i - len(strings.TrimRight(s[:i], `\`)); slashes%2 == 0 {
				quoted = !quoted
			}
		case ',':
			if !quoted {
				return i
			}
		}
	}
	return -1
}

// forwardedNode accepts exactly one parameter "for".
func forwardedNode(entry string) (addr netip.Addr, ok bool) {
	for more := true; more; {
		var pair string
		pair, entry, more = cutUnquoted(entry, ';')
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "for") {
			continue
		}
		if ok { // a second one: there is no telling which one is right
			return netip.Addr{}, false
		}
		if addr, ok = parseNode(unquote(strings.TrimSpace(value))); !ok {
			return netip.Addr{}, false
		}
	}
	return addr, ok
}

// unquote returns "" for a malformed quoted string, and other text as it is.
func unquote(s string) string {
	if !strings.HasPrefix(s, `"`) {
		return s
	}
	if inner := s[1:]; strings.IndexAny(inner, `"\`) == len(inner)-1 && strings.HasSuffix(inner, `"`) {
		return inner[:len(inner)-1]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			if i == len(s)-1 {
				return b.String()
			}
			return ""
		case '\\':
			if i++; i == len(s) {
				return ""
			}
		}
		b.WriteByte(s[i])
	}
	return ""
}

// parseNode reads RFC 7239, section 6: IPv6 in brackets, and perhaps a port.
func parseNode(s string) (netip.Addr, bool) {
	host, port, hasPort := strings.Cut(s, ":")
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return netip.Addr{}, false
		}
		host, port = s[1:end], s[end+1:]
		if hasPort = port != ""; hasPort && port[0] != ':' {
			return netip.Addr{}, false
		}
		port = strings.TrimPrefix(port, ":")
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Is4() == strings.HasPrefix(s, "[") || hasPort && !isPort(port) {
		return netip.Addr{}, false
	}
	return addr.Unmap().WithZone(""), true
}

// isPort reports whether s is up to 5 digits, or an underscore and a name.
func isPort(s string) bool {
	if name, ok := strings.CutPrefix(s, "_"); ok {
		return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
			return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '.' && c != '_' && c != '-'
		})
	}
	return s != "" && len(s) <= 5 && !strings.ContainsFunc(s, func(c rune) bool { return c < '0' || c > '9' })
}

func cutUnquoted(s string, separator byte) (before, after string, found bool) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == separator && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}
