package inbound_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
)

// request is one that comes from an address with the given lines of X-Forwarded-For.
func request(from string, forwarded ...string) *http.Request {
	r := get("", "/")
	r.RemoteAddr = from
	r.Header["X-Forwarded-For"] = forwarded
	return r
}

var proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ffff::/48")}

// none stands for an error.
const none = ""

func check(t *testing.T, key inbound.Address, r *http.Request, want string, name string) {
	t.Helper()
	got, err := key(r)
	if want == none {
		require.ErrorContains(t, err, "inbound: no client address", name)
		require.Less(t, len(err.Error()), 200, "of what a client wrote, no more than a little")
		return
	}
	require.NoError(t, err, name)
	require.Equal(t, netip.MustParseAddr(want), got, name)
}

func TestRemoteAddr(t *testing.T) {
	for from, want := range map[string]string{
		"203.0.113.7:4711":                   "203.0.113.7",
		"[::ffff:203.0.113.7]:4711":          "203.0.113.7",
		"[2001:db8:1:2:3:4:5:6]:4711":        "2001:db8:1:2::",
		"[fe80::1%eth0]:4711":                "fe80::",
		"203.0.113.7":                        "203.0.113.7",
		"@":                                  none,
		"":                                   none,
		"localhost:80":                       none,
		strings.Repeat("x", 100_000) + ":80": none,
	} {
		check(t, reserve.Must(inbound.RemoteAddr()), request(from, "198.51.100.1"), want, from)
	}
	r := request("[2001:db8:1:2:3:4:5:6]:1")
	check(t, reserve.Must(inbound.RemoteAddr(inbound.IPv6Prefix(128))), r, "2001:db8:1:2:3:4:5:6", "/128")
	check(t, reserve.Must(inbound.RemoteAddr(inbound.IPv6Prefix(48))), r, "2001:db8:1::", "/48")
	check(t, reserve.Must(inbound.RemoteAddr(inbound.IPv6Prefix(56))), request("[2001:db8:1:22ff::1]:1"), "2001:db8:1:2200::", "/56")
	check(t, reserve.Must(inbound.RemoteAddr(inbound.IPv6Prefix(128))), request("[fe80::1%eth0]:1"), "fe80::1", "zone")
}

func TestTrustedHeader(t *testing.T) {
	key := reserve.Must(inbound.TrustedHeader("cf-connecting-ip"))
	for _, c := range []struct {
		values []string
		want   string
	}{
		{[]string{"203.0.113.7"}, "203.0.113.7"},
		{[]string{" 2001:db8::1 "}, "2001:db8::"},
		{nil, none},
		{[]string{""}, none},
		{[]string{"203.0.113.7", "203.0.113.8"}, none},
		{[]string{"203.0.113.7, 203.0.113.8"}, none},
		{[]string{"garbage"}, none},
	} {
		r := request("10.0.0.1:1", "198.51.100.1")
		r.Header["Cf-Connecting-Ip"] = c.values
		check(t, key, r, c.want, fmt.Sprint(c.values))
	}
}

func TestForwardedFor(t *testing.T) {
	key := reserve.Must(inbound.XForwardedFor(proxies))
	for _, c := range []struct {
		name      string
		from      string
		forwarded []string
		want      string
	}{
		{"one proxy", "10.0.0.1:1", []string{"203.0.113.7"}, "203.0.113.7"},
		{"two", "10.0.0.1:1", []string{"203.0.113.7, 10.9.9.9"}, "203.0.113.7"},
		{"over several lines", "10.0.0.1:1", []string{"203.0.113.7", "10.9.9.9,10.0.0.3", "10.0.0.4"}, "203.0.113.7"},
		{"IPv6", "[2001:db8:ffff::1]:1", []string{"2001:db8:1:2:3::, 2001:db8:ffff:9::9"}, "2001:db8:1:2::"},
		{"mapped", "[::ffff:10.0.0.1]:1", []string{"::ffff:203.0.113.7, ::ffff:10.0.0.2"}, "203.0.113.7"},
		{"with ports", "10.0.0.1:1", []string{"203.0.113.7:555, [2001:db8:ffff::2]:80, [2001:db8:ffff::2]"}, "203.0.113.7"},
		{"zone", "10.0.0.1:1", []string{"fe80::1%eth0"}, "fe80::"},
		{"the client lies on the left", "10.0.0.1:1", []string{"198.51.100.1, 203.0.113.7"}, "203.0.113.7"},
		{"says it were a proxy", "10.0.0.1:1", []string{"10.0.0.2, 203.0.113.7"}, "203.0.113.7"},
		{"in a line of its own", "10.0.0.1:1", []string{"198.51.100.1", "203.0.113.7"}, "203.0.113.7"},
		{"garbage on the left", "10.0.0.1:1", []string{"<script>, ,,, 203.0.113.7"}, "203.0.113.7"},
		{"connects past the proxy", "203.0.113.7:1", []string{"198.51.100.1"}, "203.0.113.7"},
		{"from inside", "10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"the proxy itself", "10.0.0.1:1", nil, "10.0.0.1"},
		{"garbage by a proxy", "10.0.0.1:1", []string{"203.0.113.7, unknown"}, none},
		{"behind a proxy", "10.0.0.1:1", []string{"203.0.113.7, unknown, 10.0.0.2"}, none},
		{"empty", "10.0.0.1:1", []string{""}, none},
		{"empty on the right", "10.0.0.1:1", []string{"203.0.113.7,"}, none},
		{"a long one", "10.0.0.1:1", []string{strings.Repeat("9", 1<<20)}, none},
		{"no connection", "@", []string{"203.0.113.7"}, none},
	} {
		check(t, key, request(c.from, c.forwarded...), c.want, c.name)
	}
}

func TestForwardedForHops(t *testing.T) {
	for _, c := range []struct {
		name      string
		proxies   int
		forwarded []string
		want      string
	}{
		{"one", 1, []string{"203.0.113.7"}, "203.0.113.7"},
		{"one, and a lie", 1, []string{"198.51.100.1, 203.0.113.7"}, "203.0.113.7"},
		{"two", 2, []string{"203.0.113.7, 192.0.2.1"}, "203.0.113.7"},
		{"two, and lies", 2, []string{"198.51.100.1, 198.51.100.2", "203.0.113.7", "192.0.2.1"}, "203.0.113.7"},
		{"what the nearer ones wrote is not read", 3, []string{"203.0.113.7, unknown, "}, "203.0.113.7"},
		{"too few", 2, []string{"203.0.113.7"}, none},
		{"none", 1, nil, none},
		{"empty", 1, []string{""}, none},
		{"garbage", 1, []string{"203.0.113.7, garbage"}, none},
	} {
		check(t, reserve.Must(inbound.XForwardedForHops(c.proxies)), request("192.0.2.9:1", c.forwarded...), c.want, c.name)
	}
}

// An IPv4 client that comes through a translator (RFC 6052, NAT64's prefix) is that client, and not the translator's
// network. As a proxy it is trusted only by the address that it comes from.
func TestClientsBehindATranslator(t *testing.T) {
	for from, want := range map[string]string{
		"[64:ff9b::203.0.113.7]:1":    "203.0.113.7",
		"[64:ff9b::cb00:7108]:1":      "203.0.113.8",
		"[64:ff9b::1:cb00:7108]:1":    "64:ff9b::",
		"[64:ff9b:1::203.0.113.7]:1":  "64:ff9b:1::",
		"[64:ff9b:0:1::cb00:7108]:1":  "64:ff9b:0:1::",
		"[64:ff9b::10.0.0.1]:1":       "10.0.0.1",
		"[64:ff9b::203.0.113.7%e1]:1": "203.0.113.7",
	} {
		check(t, remote, request(from), want, from)
		check(t, reserve.Must(inbound.RemoteAddr(inbound.IPv6Prefix(48))), request("[64:ff9b::203.0.113.7]:1"), "203.0.113.7", "/48")
		check(t, reserve.Must(inbound.RemoteAddr(inbound.IPv6Prefix(128))), request("[64:ff9b::203.0.113.7]:1"), "203.0.113.7", "/128")
	}
	key := reserve.Must(inbound.XForwardedFor(proxies))
	check(t, key, request("10.0.0.1:1", "64:ff9b::203.0.113.7"), "203.0.113.7", "forwarded")
	check(t, key, request("[64:ff9b::10.0.0.1]:1", "203.0.113.7"), "10.0.0.1", "no proxy")
	check(t, key, request("10.0.0.2:1", "203.0.113.7, 64:ff9b::10.0.0.1"), "10.0.0.1", "no proxy")
	both := reserve.Must(inbound.XForwardedFor(append(proxies, netip.MustParsePrefix("64:ff9b::a00:0/104"))))
	check(t, both, request("[64:ff9b::10.0.0.1]:1", "203.0.113.7"), "203.0.113.7", "a proxy that is said to come through it")
}

// Ten thousand addresses cost no more than the ones that count.
func TestTenThousandAddresses(t *testing.T) {
	lies := strings.Repeat("198.51.100.1, 10.0.0.9, ", 5_000)
	trusted := reserve.Must(inbound.XForwardedFor(proxies))
	hops := reserve.Must(inbound.XForwardedForHops(2))
	r := request("10.0.0.1:1", lies+"203.0.113.7, 10.0.0.2")
	for name, key := range map[string]inbound.Address{"trusted": trusted, "hops": hops} {
		check(t, key, r, "203.0.113.7", name)
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = key(r) }), 0., name)
	}
	lines := slices.Repeat([]string{"198.51.100.1"}, 10_000)
	check(t, trusted, request("10.0.0.1:1", append(lines, "203.0.113.7")...), "203.0.113.7", "lines")
	check(t, trusted, request("10.0.0.1:1", strings.Repeat("10.0.0.2,", 10_000)+"10.0.0.2"), "10.0.0.2", "all trusted")
	check(t, trusted, request("10.0.0.1:1", strings.Repeat(",", 10_000)), none, "commas")
}

// One client is one client, however its address is spelled, and with every address of its network.
func TestOneClientOneKey(t *testing.T) {
	key := reserve.Must(inbound.XForwardedFor(proxies))
	h := build(t, []inbound.Tier{inbound.PerKey("client", key, bucket(1e-6, 1))}).Handler(ok)
	require.Equal(t, 200, status(h, request("10.0.0.1:1", "2001:db8:1:2::1")))
	for i := range 100 {
		require.Equal(t, 429, status(h, request("10.0.0.1:1", fmt.Sprintf("198.51.100.%d, 2001:db8:1:2::%x", i, i))))
	}
	require.Equal(t, 200, status(h, request("10.0.0.1:1", "203.0.113.7")))
	require.Equal(t, 429, status(h, request("10.0.0.2:1", "::ffff:203.0.113.7")))
	require.Equal(t, 503, status(h, request("10.0.0.1:1", "unknown")), "not one key for all who have none")
}

func TestBadAddressOptions(t *testing.T) {
	for want, build := range map[string]func() (inbound.Address, error){
		"inbound: IPv6Prefix is 0; want 1 to 128 bits":                    func() (inbound.Address, error) { return inbound.RemoteAddr(inbound.IPv6Prefix(0)) },
		"inbound: IPv6Prefix is 129; want 1 to 128 bits":                  func() (inbound.Address, error) { return inbound.XForwardedForHops(1, inbound.IPv6Prefix(129)) },
		`inbound: TrustedHeader is ""; want the name of a header`:         func() (inbound.Address, error) { return inbound.TrustedHeader("") },
		"inbound: XForwardedForHops is 0; want at least 1 proxy":          func() (inbound.Address, error) { return inbound.XForwardedForHops(0) },
		"inbound: XForwardedFor is []; want at least 1 network":           func() (inbound.Address, error) { return inbound.XForwardedFor(nil) },
		"inbound: XForwardedFor is invalid Prefix; want networks of IPv4": func() (inbound.Address, error) { return inbound.XForwardedFor(make([]netip.Prefix, 1)) },
		"inbound: XForwardedFor is ::ffff:1.2.3.0/120; want networks of": func() (inbound.Address, error) {
			return inbound.XForwardedFor([]netip.Prefix{netip.MustParsePrefix("::ffff:1.2.3.0/120")})
		},
		"inbound: option 1 is <nil>; want an option": func() (inbound.Address, error) { return inbound.RemoteAddr(nil) },
	} {
		_, err := build()
		require.ErrorContains(t, err, want)
	}
}

// A client is the same client with any text in front of that of the proxies.
func FuzzForwardedFor(f *testing.F) {
	for _, lie := range []string{"", "198.51.100.1", "10.0.0.9, 10.0.0.8", ",,,", "::1%x", "[::1]:80", "\x00\xff", strings.Repeat("1,", 999)} {
		f.Add(lie, false)
		f.Add(lie, true)
	}
	keys := []inbound.Address{reserve.Must(inbound.XForwardedFor(proxies)), reserve.Must(inbound.XForwardedForHops(2))}
	f.Fuzz(func(t *testing.T, lie string, ownLine bool) {
		lines := []string{lie + ", 203.0.113.7, 10.0.0.2"}
		if ownLine {
			lines = []string{lie, "203.0.113.7", "10.0.0.2"}
		}
		for i, key := range keys {
			check(t, key, request("10.0.0.1:1", lines...), "203.0.113.7", fmt.Sprint(i))

			// And of the header alone: either an address as it must be, or an error.
			got, err := key(request("10.0.0.1:1", lie))
			if err != nil {
				require.ErrorContains(t, err, "inbound: no client address")
				continue
			}
			require.True(t, got.IsValid())
			require.False(t, got.Is4In6())
			require.Empty(t, got.Zone())
			if got.Is6() {
				require.Equal(t, got, netip.PrefixFrom(got, 64).Masked().Addr())
			}
		}
		// The walker against a naive one.
		var want []string
		for _, line := range lines {
			want = append(want, strings.Split(line, ",")...)
		}
		for n := 1; n <= min(len(want), 4); n++ {
			got, err := reserve.Must(inbound.XForwardedForHops(n))(request("10.0.0.1:1", lines...))
			alone, alsoErr := reserve.Must(inbound.TrustedHeader("X-Forwarded-For"))(request("10.0.0.1:1", want[len(want)-n]))
			require.Equal(t, alsoErr == nil, err == nil)
			require.Equal(t, alone, got)
		}
	})
}
