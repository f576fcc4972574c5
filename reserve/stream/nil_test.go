package stream_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/stream"
)

// What is nil is reported where it is given.
func TestNil(t *testing.T) {
	ctx, by := context.Background(), reserve.All()
	var noContext context.Context
	elements := func(func(int) bool) {}
	for want, make := range map[string]func(){
		"Reader's context": func() { stream.Reader(noContext, strings.NewReader(""), by) },
		"Reader's reader":  func() { stream.Reader(ctx, (*strings.Reader)(nil), by) },
		"Reader's limiter": func() { stream.Reader(ctx, strings.NewReader(""), nil) },
		"Writer's context": func() { stream.Writer(noContext, &strings.Builder{}, by) },
		"Writer's writer":  func() { stream.Writer(ctx, nil, by) },
		"Writer's limiter": func() { stream.Writer(ctx, &strings.Builder{}, (*reserve.Limiter)(nil)) },
		"Seq's context":    func() { stream.Seq(noContext, elements, by, nil) },
		"Seq's sequence":   func() { stream.Seq(ctx, iter.Seq[int](nil), by, nil) },
		"Seq's limiter":    func() { stream.Seq(ctx, elements, nil, nil) },
	} {
		func() {
			defer func() {
				require.EqualError(t, recover().(error), "stream: "+want+" is <nil>; want a value")
			}()
			make()
		}()
	}
}
