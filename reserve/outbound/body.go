package outbound

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// Body returns the body of a request, for functions that find a key or a cost in it: the points of a GraphQL query, the
// channel of a message. It leaves the body that is sent alone, so it needs the request's GetBody, which
// [http.NewRequest] sets for buffers, byte slices and strings. Without it, or without a body, Body returns nil.
//
// In the functions of a transport's options the body is read once for each request and all of its attempts. The bytes
// must not be changed. It may be called at the same time.
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

type content struct {
	of    *http.Request
	once  sync.Once
	bytes []byte
}

type contentKey struct{}

// withContent returns the request for the caller's functions, which remembers its body.
func withContent(r *http.Request) *http.Request {
	if r.GetBody == nil {
		return r
	}
	c := new(content)
	c.of = r.WithContext(context.WithValue(r.Context(), contentKey{}, c))
	return c.of
}
