package isnil_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/isnil"
)

func TestValue(t *testing.T) {
	for _, v := range []any{nil, (*int)(nil), (func())(nil), map[int]int(nil), (chan int)(nil), error(nil)} {
		require.True(t, isnil.Value(v), "%T", v)
	}
	for _, v := range []any{0, "", new(int), func() {}, map[int]int{}, make(chan int), struct{}{}, []int(nil), errors.New("x")} {
		require.False(t, isnil.Value(v), "%T", v)
	}
}
