package goredis_test

import (
	"log"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A proxy delays requests, and lets of the answers on a connection so many bytes through, or only
// every other.
type proxy struct {
	addr  string
	mu    sync.Mutex
	delay time.Duration
	most  int // 0: all
	moody bool
	count int // of answers while it is
}

func (p *proxy) set(to func(p *proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to(p)
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{addr: l.Addr().String()}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				log.Print(err)
				_ = in.Close()
				continue
			}
			mu.Lock()
			open = append(open, in, out)
			mu.Unlock()
			wg.Go(func() { p.pass(out, in, true); _ = out.Close() })
			wg.Go(func() { p.pass(in, out, false); _ = in.Close() })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return p
}

func (p *proxy) pass(to, from net.Conn, requests bool) {
	buffer, passed := make([]byte, 64<<10), 0
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		delay, most, lost := p.delay, p.most, false
		if p.moody && !requests {
			p.count++
			lost = p.count%2 == 0
		}
		p.mu.Unlock()
		switch {
		case requests && delay > 0:
			<-time.After(delay)
		case lost:
			continue
		case !requests && most > 0:
			if n = min(n, most-passed); n <= 0 {
				return
			}
			passed += n
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
