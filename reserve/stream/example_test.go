package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/stream"
)

// An upload at 1 MiB/s at most, which many could share.
func ExampleWriter() {
	limiter := reserve.Must(pace.NewBursty(1 << 20))

	var upload strings.Builder // a connection, in life
	n, err := io.Copy(stream.Writer(context.Background(), &upload, limiter), strings.NewReader("every byte is a permit"))
	fmt.Println(n, err)
	fmt.Println(upload.String())
	// Output:
	// 22 <nil>
	// every byte is a permit
}

// A download that can't be done in the time that is left fails without reading on.
func ExampleReader() {
	limiter := reserve.Must(pace.NewBursty(10)) // bytes a second
	limiter.TryAcquire(600)                     // another caller's: paid for in a minute

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := io.ReadAll(stream.Reader(ctx, strings.NewReader("the source"), limiter))

	var wait *reserve.WaitError
	fmt.Println(errors.As(err, &wait), wait.Wait.Round(time.Second), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// true 1m0s true
}

// Each user costs as many calls as it has pages.
func ExampleSeq() {
	type user struct {
		name  string
		pages int
	}
	users := slices.Values([]user{{"ada", 3}, {"grace", 1}, {"kurt", 2}})
	limiter := reserve.Must(pace.NewBursty(math.Inf(1))) // or a number of calls a second

	for u, err := range stream.Seq(context.Background(), users, limiter, func(u user) int { return u.pages }) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(u.name)
	}
	// Output:
	// ada
	// grace
	// kurt
}
