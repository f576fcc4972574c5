package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPrompt(t *testing.T) {
	o := Orders{Reply: 40, Chunks: 5, Takes: 1500 * time.Millisecond, Breaks: 2}
	p := Prompt(100, o)
	require.Equal(t, 100, Tokens(p))
	require.Equal(t, o, read(p))
	require.Equal(t, Orders{Reply: 16, Chunks: 4}, read(Prompt(3, Orders{})))
	require.Equal(t, Orders{Reply: 16, Chunks: 4}, read("why"))
	require.Equal(t, 3, Tokens(Prompt(3, Orders{})))
}
