package outbound

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// Body returns a request's body, for functions that find a key or a cost in it: the points of a GraphQL query, the
// channel of a message. It needs GetBody, which [http.NewRequest] sets for buffers, byte slices and strings, and
// returns nil without it. A transport's options read the body once for all attempts. The bytes must not be changed.
// Body may be called at the same time.
func Body(r *http.Request) []byte {
	if r.GetBody == nil {
		return nil
	}
	if c, ok := r.Context().Value(contentKey{}).(*content); ok && c.of == r {
		c.once.Do(func() { c.bytes = readBody(r) })
		return c.bytes
	}
	return readBody(r)
}

func readBody(r *http.Request) []byte {
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		return nil
	}
	return b
}

// content is the context of a request whose body is read once.
type content struct {
	context.Context
	of    *http.Request
	once  sync.Once
	bytes []byte
}

type contentKey struct{}

func (c *content) Value(key any) any {
	if key == (contentKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func withContent(r *http.Request) *http.Request {
	if r.GetBody == nil {
		return r
	}
	c := &content{Context: r.Context()}
	c.of = r.WithContext(c)
	return c.of
}
