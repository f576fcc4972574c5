package outbound

import (
	"io"

	"github.com/nextfree/pace/reserve/outbound/internal/bodies"
)

// leave gives places in flight back.
func leave(seats []charge) {
	for i := range seats {
		if seats[i].Held != nil {
			seats[i].Held.Cancel()
		}
	}
}

// placed returns a response's body whose Close gives the places back: until then the server may still work on it.
func placed(of io.ReadCloser, seats []charge) io.ReadCloser {
	return bodies.Instead(of, &placedBody{of, seats})
}

type placedBody struct {
	io.ReadCloser
	seats []charge
}

func (b *placedBody) Close() error {
	defer leave(b.seats)
	return b.ReadCloser.Close()
}
