package a

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nextfree/pace"
	body "github.com/nextfree/pace/reserve/plug/xtime/rate"
	"golang.org/x/time/rate"
)

func isLimit(err error) bool {
	return strings.Contains(err.Error(), "would exceed context deadline") // want `recognized by its text: use errors.Is`
}

func isBurst(err error) bool {
	return strings.HasPrefix(err.Error(), "rate: Wait(n=") || // want `is recognized by its text`
		"rate: Wait(n=2) exceeds limiter's burst 1" == err.Error() // want `is recognized by its text`
}

func ofXtime(ctx context.Context, lim *rate.Limiter) bool {
	err := lim.Wait(ctx)
	return err != nil && err.Error() == context.DeadlineExceeded.Error() // want `golang.org/x/time/rate's has no type`
}

func fixed(ctx context.Context, lim *body.Limiter) bool {
	err := lim.Wait(ctx)
	if err == nil {
		return false
	}
	if err.Error() != "rate: Wait(n=1) would exceed context deadline" { // want `is recognized by its text`
		return false
	}
	return strings.Contains(err.Error(), "would exceed context deadline") // want `is recognized by its text`
}

func ofPace(ctx context.Context, lim *pace.Limiter) bool {
	_, err := lim.Acquire(ctx, 1)
	switch err.Error() { // want `is recognized by its text`
	case "context canceled":
		return true
	}
	return false
}

// What is right.

func typed(ctx context.Context, lim *body.Limiter) bool {
	err := lim.Wait(ctx)
	fmt.Println(err.Error(), len(err.Error()) > 3)
	return errors.Is(err, context.DeadlineExceeded)
}

func others(ctx context.Context, lim *rate.Limiter) bool {
	_, err := os.Open("file")
	if err == nil {
		err = lim.Wait(ctx)
	}
	return err != nil && (err.Error() == "timeout" || strings.Contains(err.Error(), "deadline"))
}

func parameter(err error) bool { return strings.Contains(err.Error(), "429") }

func texts(s string) bool { return strings.Contains(s, "would exceed context deadline") }
