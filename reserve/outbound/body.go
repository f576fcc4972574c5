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
		return c.read()
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
	of   *http.Request
	read func() []byte
}

type contentKey struct{}

func withContent(r *http.Request) *http.Request {
	if r.GetBody == nil {
		return r
	}
	c := new(content)
	c.of = r.WithContext(context.WithValue(r.Context(), contentKey{}, c))
	c.read = sync.OnceValue(func() []byte { return readBody(c.of) })
	return c.of
}
