package inbound_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
)

// forwarded is a request that comes from an address with the given lines of Forwarded.
func forwarded(from string, lines ...string) *http.Request {
	r := get("", "/")
	r.RemoteAddr = from
	r.Header["Forwarded"] = lines
	return r
}

func TestForwarded(t *testing.T) {
	key := reserve.Must(inbound.Forwarded(proxies))
	for _, c := range []struct {
		name  string
		from  string
		lines []string
		want  string
	}{
		{"one proxy", "10.0.0.1:1", []string{"for=203.0.113.7"}, "203.0.113.7"},
		{"two", "10.0.0.1:1", []string{"for=203.0.113.7, for=10.9.9.9"}, "203.0.113.7"},
		{"over several lines", "10.0.0.1:1", []string{"for=203.0.113.7", "for=10.9.9.9,for=10.0.0.3", "for=10.0.0.4"}, "203.0.113.7"},
		{"as in the RFC", "10.0.0.1:1", []string{`for=203.0.113.43, for="[2001:db8:ffff::17]"`}, "203.0.113.43"},
		{"in any case", "10.0.0.1:1", []string{`FOR="203.0.113.7:4711"`}, "203.0.113.7"},
		{"with others", "10.0.0.1:1", []string{"proto=http;by=203.0.113.43; For=203.0.113.7 ;host=example.com:80"}, "203.0.113.7"},
		{"IPv6", "[2001:db8:ffff::1]:1", []string{`for="[2001:db8:1:2:3::]"`}, "2001:db8:1:2::"},
		{"IPv6 with a port", "10.0.0.1:1", []string{`for="[2001:db8:1:2:3::]:4711"`}, "2001:db8:1:2::"},
		{"IPv6 with a hidden port", "10.0.0.1:1", []string{`for="[2001:db8:1:2:3::]:_aB0.-_"`}, "2001:db8:1:2::"},
		{"IPv6 that is not quoted", "10.0.0.1:1", []string{"for=[2001:db8:1:2:3::]:1"}, "2001:db8:1:2::"},
		{"mapped", "[::ffff:10.0.0.1]:1", []string{`for="[::ffff:203.0.113.7]", for="[::ffff:10.0.0.2]"`}, "203.0.113.7"},
		{"zone", "10.0.0.1:1", []string{`for="[fe80::1%eth0]"`}, "fe80::"},
		{"translated", "10.0.0.1:1", []string{`for="[64:ff9b::203.0.113.7]"`}, "203.0.113.7"},
		{"a port that is not quoted", "10.0.0.1:1", []string{"for=203.0.113.7:4711"}, "203.0.113.7"},
		{"the longest port", "10.0.0.1:1", []string{`for="203.0.113.7:99999"`}, "203.0.113.7"},
		{"escaped", "10.0.0.1:1", []string{`for="\2\03.0\.113.7"`}, "203.0.113.7"},
		{"commas and semicolons in strings", "10.0.0.1:1", []string{`for=203.0.113.7;host="a, for=1.1.1.1;for=2.2.2.2"`}, "203.0.113.7"},
		{"quotes in strings", "10.0.0.1:1", []string{`for=203.0.113.7;host="a\", for=1.1.1.1;for=2.2.2.2\\\""`}, "203.0.113.7"},
		{"a string that ends with a backslash", "10.0.0.1:1", []string{`for=198.51.100.1,for=203.0.113.7;host="a,\\"`}, "203.0.113.7"},
		{"an empty string", "10.0.0.1:1", []string{`for=198.51.100.1,for=203.0.113.7;host=""`}, "203.0.113.7"},
		{"empty pairs", "10.0.0.1:1", []string{";for=203.0.113.7;;"}, "203.0.113.7"},
		{"from inside", "10.0.0.1:1", []string{"for=10.0.0.3, for=10.0.0.2"}, "10.0.0.3"},
		{"the proxy itself", "10.0.0.1:1", nil, "10.0.0.1"},
		{"connects past the proxy", "203.0.113.7:1", []string{"for=198.51.100.1"}, "203.0.113.7"},
		{"no connection", "@", []string{"for=203.0.113.7"}, none},

		{"the client lies on the left", "10.0.0.1:1", []string{"for=198.51.100.1, for=203.0.113.7"}, "203.0.113.7"},
		{"leaves a string open", "10.0.0.1:1", []string{`for="198.51.100.1, for=203.0.113.7`}, "203.0.113.7"},
		{"and the proxy writes one", "10.0.0.1:1", []string{`for="198.51.100.1, for="203.0.113.7"`}, "203.0.113.7"},
		{"and two", "10.0.0.1:1", []string{`for=198.51.100.1;x="a, for="203.0.113.7";by="10.0.0.1"`}, "203.0.113.7"},
		{"escapes the comma", "10.0.0.1:1", []string{`for=198.51.100.1\, for=203.0.113.7`}, "203.0.113.7"},
		{"in a line of its own", "10.0.0.1:1", []string{`for="198.51.100.1`, "for=203.0.113.7"}, "203.0.113.7"},

		{"hidden", "10.0.0.1:1", []string{"for=_hidden"}, none},
		{"hidden behind a proxy", "10.0.0.1:1", []string{"for=203.0.113.7, for=_SEVKISEK, for=10.0.0.2"}, none},
		{"unknown", "10.0.0.1:1", []string{"for=203.0.113.7, for=unknown"}, none},
		{"an unknown one with a port", "10.0.0.1:1", []string{`for="unknown:4711"`}, none},
		{"without for", "10.0.0.1:1", []string{"for=203.0.113.7, by=10.0.0.1;proto=https"}, none},
		{"with two", "10.0.0.1:1", []string{"for=198.51.100.1;for=203.0.113.7"}, none},
		{"no bracket at the beginning", "10.0.0.1:1", []string{`for="2001:db8::1]"`}, none},
		{"a port of any form", "10.0.0.1:1", []string{`for="203.0.113.7:http"`}, "203.0.113.7"},
		{"a name", "10.0.0.1:1", []string{"for=localhost"}, none},
		{"octal", "10.0.0.1:1", []string{"for=0203.0.113.7"}, none},
		{"no value", "10.0.0.1:1", []string{"for"}, none},
		{"an empty value", "10.0.0.1:1", []string{"for="}, none},
		{"an empty quoted value", "10.0.0.1:1", []string{`for=""`}, none},
		{"a quote alone", "10.0.0.1:1", []string{`for="`}, none},
		{"a string that does not end", "10.0.0.1:1", []string{`for="203.0.113.7`}, none},
		{"or ends with an escape", "10.0.0.1:1", []string{`for="203.0.113.7\`}, none},
		{"or with an escaped quote", "10.0.0.1:1", []string{`for="203.0.113.7\"`}, none},
		{"something behind the string", "10.0.0.1:1", []string{`for="203.0.113.7"x`}, none},
		{"behind an escaped string", "10.0.0.1:1", []string{`for="\203.0.113.7"x`}, none},
		{"empty", "10.0.0.1:1", []string{""}, none},
		{"empty on the right", "10.0.0.1:1", []string{"for=203.0.113.7,"}, none},
		{"a long one", "10.0.0.1:1", []string{"for=" + strings.Repeat("9", 1<<20)}, none},
	} {
		check(t, key, forwarded(c.from, c.lines...), c.want, c.name)
	}
}

func TestForwardedHops(t *testing.T) {
	for _, c := range []struct {
		name    string
		proxies int
		lines   []string
		want    string
	}{
		{"one", 1, []string{"for=203.0.113.7"}, "203.0.113.7"},
		{"one, and a lie", 1, []string{`for=198.51.100.1, for="203.0.113.7"`}, "203.0.113.7"},
		{"two", 2, []string{`for=203.0.113.7, for="192.0.2.1";by=_a`}, "203.0.113.7"},
		{"two, over lines", 2, []string{"for=198.51.100.1, for=203.0.113.7", "for=_hidden"}, "203.0.113.7"},
		{"too few", 2, []string{"for=203.0.113.7"}, none},
		{"none", 1, nil, none},
		{"garbage", 1, []string{"for=203.0.113.7, garbage"}, none},
	} {
		check(t, reserve.Must(inbound.ForwardedHops(c.proxies)), forwarded("192.0.2.9:1", c.lines...), c.want, c.name)
	}
	for want, build := range map[string]func() (inbound.Address, error){
		"inbound: Forwarded is []; want at least 1 network of proxies": func() (inbound.Address, error) { return inbound.Forwarded(nil) },
		"inbound: ForwardedHops is 0; want at least 1 proxy":           func() (inbound.Address, error) { return inbound.ForwardedHops(0) },
		"inbound: Forwarded is invalid Prefix; want networks of IPv4 or IPv6 addresses": func() (inbound.Address, error) {
			return inbound.Forwarded(make([]netip.Prefix, 1))
		},
	} {
		_, err := build()
		require.EqualError(t, err, want)
	}
}

// Ten thousand entries cost no more than the ones that count.
func TestTenThousandEntries(t *testing.T) {
	lies := strings.Repeat(`for=198.51.100.1;by="\", for=10.0.0.9, `, 5_000)
	for name, key := range map[string]inbound.Address{
		"trusted": reserve.Must(inbound.Forwarded(proxies)),
		"hops":    reserve.Must(inbound.ForwardedHops(2)),
	} {
		r := forwarded("10.0.0.1:1", lies+`for=203.0.113.7, for="10.0.0.2:80"`)
		check(t, key, r, "203.0.113.7", name)
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = key(r) }), name)
	}
}

// hostile makes headers as an attacker would, of parts that it has made before.
type hostile struct {
	*rand.Rand
	parts []string
}

func (h hostile) pick(from ...string) string { return from[h.IntN(len(from))] }

// part is a piece of such a header.
func (h hostile) part() string {
	switch h.IntN(5) {
	case 0:
		return h.pick(",", ", ", ";", "; ", "=", `"`, `\`, `\"`, `\\`, "[", "]", ":", "%", "_", " ", "\t", "\x00", "\xff", "é", ",,,,", `"""`, `",`, `,"`)
	case 1:
		return h.pick("for=", "For=", "FOR =", "by=", "host=", "proto=", `for="`, `for="[`, "for", "unknown", "_hidden", "203.0.113.7", "localhost")
	case 2:
		return fmt.Sprintf("%d.%d.%d.%d", h.IntN(300), h.IntN(256), h.IntN(256), h.IntN(256))
	case 3:
		return h.pick("", "[") + fmt.Sprintf("2001:db8:%x::%x", h.IntN(1<<16), h.IntN(1<<16)) + h.pick("", "]", "]:80", "%eth0]", ":80")
	}
	return h.pick("10.0.0.9", "for=10.0.0.9, ", "::ffff:10.0.0.9", "[2001:db8:ffff::1]", "64:ff9b::10.0.0.9", "::ffff:198.51.100.1", "64:ff9b::198.51.100.1", ":4711", ":_x")
}

func (h hostile) lines() []string {
	lines := make([]string, h.IntN(3))
	for i := range lines {
		var b strings.Builder
		for range h.IntN(12) {
			b.WriteString(h.pick(h.parts...))
		}
		lines[i] = b.String()
	}
	return lines
}

// append is what a proxy does: it adds an entry to the last line, or a line.
func (h hostile) append(lines []string, entry string) []string {
	if len(lines) == 0 || h.IntN(2) == 0 {
		return append(lines, entry)
	}
	lines[len(lines)-1] += h.pick(",", ", ") + entry
	return lines
}

// A million headers that a client made up, of both kinds, behind two proxies: its key is its own each time. And
// where no proxy has added anything, it is the connection's, an error, or an address as a key must be.
func TestAMillionHostileHeaders(t *testing.T) {
	h := hostile{Rand: rand.New(rand.NewPCG(7, 39))}
	for range 10_000 {
		h.parts = append(h.parts, h.part())
	}
	const forX, forF = 0, 1
	keys := [2][]inbound.Address{
		{reserve.Must(inbound.XForwardedFor(proxies)), reserve.Must(inbound.XForwardedForHops(2))},
		{reserve.Must(inbound.Forwarded(proxies)), reserve.Must(inbound.ForwardedHops(2))},
	}
	// How a client and a proxy are written by the proxies, which have copied a Host from the client, and quoted it.
	clients := map[string][2][]string{
		"203.0.113.7": {
			{"203.0.113.7", "203.0.113.7:99", "::ffff:203.0.113.7", "64:ff9b::203.0.113.7"},
			{"for=203.0.113.7", `For="203.0.113.7:99"`, `for="[::ffff:203.0.113.7]";host="a, for=1.1.1.1"`, `host="\"";for="[64:ff9b::203.0.113.7]:_x"`},
		},
		"2001:db8:1:2::": {
			{"2001:db8:1:2:3::4", "[2001:db8:1:2::5]", "[2001:db8:1:2::5]:99"},
			{`for="[2001:db8:1:2:3::4]"`, `proto=https;for="[2001:db8:1:2::5]:99";host="a\\"`, `for="\[2001:db8:1:2::\5]"`},
		},
	}
	proxy := [2][]string{{"10.0.0.2", "2001:db8:ffff::2"}, {"for=10.0.0.2", `for="[2001:db8:ffff::2]:80";by="10.0.0.1;,"`}}
	header := [2]string{"X-Forwarded-For", "Forwarded"}
	own := map[string]netip.Addr{}
	for want := range clients {
		own[want] = netip.MustParseAddr(want)
	}
	r := get("", "/")
	rounds := 100_000 / limitertest.Slower
	if testing.Short() {
		rounds /= 10
	}
	for round := range rounds {
		want := h.pick("203.0.113.7", "2001:db8:1:2::")
		for _, kind := range []int{forX, forF} {
			r.RemoteAddr = "10.0.0.1:1"
			lines := h.lines()
			lines = h.append(lines, h.pick(clients[want][kind]...))
			lines = h.append(lines, h.pick(proxy[kind]...))
			r.Header[header[kind]] = lines
			for i, key := range keys[kind] {
				if got, err := key(r); err != nil || got != own[want] {
					require.FailNow(t, "a fresh key", "%s: %v %v, from %q (%d)", header[kind], got, err, lines, i)
				}
			}
			if round%8 > 0 {
				continue
			}
			r.Header[header[kind]] = h.lines()
			got, err := keys[kind][0](r)
			if err == nil && (!got.IsValid() || got.Is4In6() || got.Zone() != "" || got.Is6() && netip.PrefixFrom(got, 64).Masked().Addr() != got) {
				require.FailNow(t, "no key", "%v, from %q", got, r.Header[header[kind]])
			}
			r.RemoteAddr = "203.0.113.9:1"
			if got, err := keys[kind][0](r); err != nil || got != netip.AddrFrom4([4]byte{203, 0, 113, 9}) {
				require.FailNow(t, "a fresh key", "%v %v, past the proxies, from %q", got, err, r.Header[header[kind]])
			}
		}
	}
}

func FuzzForwarded(f *testing.F) {
	for _, lie := range []string{"", "for=198.51.100.1", `for="`, `\`, `for=10.0.0.9, for="[2001:db8:ffff::1]"`, ",,,", `"\",`, strings.Repeat("for=10.0.0.9,", 99)} {
		f.Add(lie, false)
		f.Add(lie, true)
	}
	keys := []inbound.Address{reserve.Must(inbound.Forwarded(proxies)), reserve.Must(inbound.ForwardedHops(2))}
	f.Fuzz(func(t *testing.T, lie string, ownLine bool) {
		lines := []string{lie + `, for="203.0.113.7", for=10.0.0.2;host="a,\"b"`}
		if ownLine {
			lines = []string{lie, "for=203.0.113.7", `for="10.0.0.2"`}
		}
		for i, key := range keys {
			check(t, key, forwarded("10.0.0.1:1", lines...), "203.0.113.7", fmt.Sprint(i))
			if got, err := key(forwarded("10.0.0.1:1", lie)); err != nil {
				require.ErrorContains(t, err, "inbound: no client address")
			} else {
				require.True(t, got.Is4() || got == netip.PrefixFrom(got, 64).Masked().Addr() && got.Zone() == "")
			}
		}
	})
}
