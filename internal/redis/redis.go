// Package redis is a small client for tests, so that the module with the limiters requires no
// client library. It is also an example of what a [shared.Scripter] has to do.
package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve/shared"
)

// An Error is a server's answer to a command that it refuses.
type Error string

func (e Error) Error() string { return string(e) }

// A Client sends commands to one server. Any number of goroutines may use it at once.
type Client struct {
	Addr  string
	Login []string // the arguments of AUTH: user and password, or none

	mu     sync.Mutex
	idle   []*conn
	closed bool
}

type conn struct {
	net.Conn
	in *bufio.Reader
}

// Close closes the connections. Commands that are under way close theirs.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.idle {
		_ = conn.Close()
	}
	c.idle = nil
}

// Eval runs a script, once: a command whose answer is lost is not sent again.
func (c *Client) Eval(ctx context.Context, script *shared.Script, key string, arg []byte) ([]byte, error) {
	answer, err := c.Do(ctx, "EVALSHA", script.Hash, 1, key, arg)
	var refused Error
	if errors.As(err, &refused) && strings.HasPrefix(string(refused), "NOSCRIPT") {
		answer, err = c.Do(ctx, "EVAL", script.Source, 1, key, arg)
	}
	if err != nil {
		return nil, err
	}
	text, ok := answer.(string)
	if !ok {
		return nil, fmt.Errorf("redis: %v is no string", answer)
	}
	return []byte(text), nil
}

// Do sends a command and returns its answer: a string, an int64, a list of both, or nil. Bytes go
// as they are, other arguments as [fmt.Print] writes them. It returns an [Error] if the server
// refuses the command, and the context's error if that ends first.
func (c *Client) Do(ctx context.Context, args ...any) (any, error) {
	conn, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := conn.do(ctx, args)
	if refused := Error(""); err != nil && !errors.As(err, &refused) {
		_ = conn.Close()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.Close()
	} else {
		c.idle = append(c.idle, conn)
	}
	return answer, err
}

func (c *Client) take(ctx context.Context) (*conn, error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		conn := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return conn, nil
	}
	c.mu.Unlock()
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", c.Addr)
	if err != nil {
		return nil, err
	}
	conn := &conn{Conn: raw, in: bufio.NewReader(raw)}
	if len(c.Login) > 0 {
		if _, err := conn.do(ctx, []any{"AUTH", c.Login[0], c.Login[1]}); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

// do leaves the connection unusable if it returns an error that is not the server's.
func (c *conn) do(ctx context.Context, args []any) (any, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	answer, err := c.exchange(args)
	if !stop() { // the deadline is set, or about to be
		return nil, context.Cause(ctx)
	}
	return answer, err
}

func (c *conn) exchange(args []any) (any, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "*%d\r\n", len(args))
	for _, arg := range args {
		text, ok := arg.([]byte)
		if !ok {
			text = fmt.Append(nil, arg)
		}
		fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(text), text)
	}
	if _, err := io.WriteString(c, out.String()); err != nil {
		return nil, err
	}
	return c.read()
}

func (c *conn) read() (any, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, text := line[0], strings.TrimSuffix(line[1:], "\r\n")
	switch kind {
	case '+':
		return text, nil
	case '-':
		return nil, Error(text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return nil, err
	case kind == ':':
		return n, nil
	case n < 0: // a string or list that does not exist
		return nil, nil
	case kind == '$':
		bytes := make([]byte, n+2)
		_, err := io.ReadFull(c.in, bytes)
		return string(bytes[:n]), err
	case kind == '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = c.read(); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("redis: what is %q?", line)
}
