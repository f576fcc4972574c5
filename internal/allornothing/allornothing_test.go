package allornothing_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/allornothing"
)

var errRefused = errors.New("refused")

// A book records what is called, and lets one promise fail or panic.
type book struct {
	calls       []string
	fail, panic int // -1: none
}

func (b *book) do(i int) error {
	b.calls = append(b.calls, fmt.Sprint("ask ", i))
	if i == b.panic {
		panic("gone wrong")
	}
	if i == b.fail {
		return errRefused
	}
	return nil
}

func (b *book) cancel(i int) { b.calls = append(b.calls, fmt.Sprint("cancel ", i)) }

func TestReserve(t *testing.T) {
	b := &book{fail: -1, panic: -1}
	_, err := allornothing.Reserve(3, b.do, b.cancel)
	require.NoError(t, err)
	require.Equal(t, []string{"ask 0", "ask 1", "ask 2"}, b.calls)

	b = &book{fail: 2, panic: -1}
	refused, err := allornothing.Reserve(4, b.do, b.cancel)
	require.Equal(t, errRefused, err)
	require.Equal(t, 2, refused)
	require.Equal(t, []string{"ask 0", "ask 1", "ask 2", "cancel 1", "cancel 0"}, b.calls)

	b = &book{fail: -1, panic: 1}
	require.Panics(t, func() { _, _ = allornothing.Reserve(4, b.do, b.cancel) })
	require.Equal(t, []string{"ask 0", "ask 1", "cancel 0"}, b.calls)

	b = &book{fail: -1, panic: -1}
	_, err = allornothing.Reserve(0, b.do, b.cancel)
	require.NoError(t, err)
	require.Empty(t, b.calls)
}

func TestLast(t *testing.T) {
	delays := []time.Duration{1, 3, 2, 3}
	last, longest := allornothing.Last(4, func(i int) time.Duration { return delays[i] })
	require.Equal(t, 1, last)
	require.Equal(t, time.Duration(3), longest)
	_, longest = allornothing.Last(0, nil)
	require.Zero(t, longest)
}

func TestWait(t *testing.T) {
	b := &book{fail: -1, panic: -1}
	_, err := allornothing.Wait(3, 1, b.do, b.cancel)
	require.NoError(t, err)
	require.Equal(t, []string{"ask 1", "ask 2", "ask 0"}, b.calls)

	b = &book{fail: 2, panic: -1}
	failed, err := allornothing.Wait(3, 1, b.do, b.cancel)
	require.Equal(t, errRefused, err)
	require.Equal(t, 2, failed)
	require.Equal(t, []string{"ask 1", "ask 2", "cancel 2", "cancel 1", "cancel 0"}, b.calls)

	b = &book{fail: -1, panic: 0}
	require.Panics(t, func() { _, _ = allornothing.Wait(2, 0, b.do, b.cancel) })
	require.Equal(t, []string{"ask 0", "cancel 1", "cancel 0"}, b.calls)
}

func TestNumber(t *testing.T) {
	for name, is := range map[string]bool{
		allornothing.Number(0, 2): true, "12 of 30": true, "calls of day": false, "1 of 2 of 3": false, "": false, "1 of": false, "01 of 2": false,
	} {
		require.Equal(t, is, allornothing.IsNumber(name), name)
	}
}
