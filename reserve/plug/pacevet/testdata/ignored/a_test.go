package a

import (
	"testing"

	"golang.org/x/time/rate"
)

func TestA(t *testing.T) { rate.NewLimiter(1, 1).Wait(t.Context()) }
