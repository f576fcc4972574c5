package outbound

import (
	"io"
	"sync"

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
	return bodies.Instead(of, &placedBody{ReadCloser: of, seats: seats})
}

type placedBody struct {
	io.ReadCloser
	once  sync.Once
	seats []charge
}

func (b *placedBody) Close() error {
	defer b.once.Do(func() { leave(b.seats) })
	return b.ReadCloser.Close()
}
