package outbound

import "github.com/nextfree/pace/reserve/outbound/internal/bodies"

// leave gives places in flight back.
func leave(seats charges) {
	for seat := range seats.all {
		if seat.Held != nil {
			seat.Held.Cancel()
		}
	}
}

// A placedBody gives places in flight back when it is over: until then the server may still work on it, and net/http
// holds its connection.
type placedBody struct {
	bodies.Watched
	seats charges
}

func (b *placedBody) Show([]byte) {}
func (b *placedBody) Last()       {}
func (b *placedBody) Over()       { leave(b.seats) }
