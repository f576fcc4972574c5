package goredis

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/turns"
)

// Store returns a store in Redis or Valkey, for the policies that the script of shared.New can't do: windows and
// quotas by the calendar. c is as in [Client]; bad settings are errors of each call.
//
//	limiter, err := shared.NewIn(goredis.Store(client), "openai", reserve.Must(window.Policy(50, time.Minute)))
//
// A call takes two round trips, one to read and one to compare and swap, and one more for each process that writes the
// key meanwhile. Callers of one process share a call. A limiter of shared.New and one of a store have the same key if
// their names are equal: each refuses what the other wrote.
func Store(c redis.Scripter) shared.Store { return &store{client: client{redis: c}} }

type store struct {
	client client
	turns  turns.Turns // callers of one process would only get in each other's way
}

// swap answers with the time in microseconds, 16 digits, and "w" if it wrote the value, or else "r" and the value that
// is there. ARGV[1] is after what time it is too late, for how many milliseconds the value is kept, the length of the
// expected value, this, and the new value; an empty one is not written.
var swap = &shared.Script{Source: swapSource, Hash: redis.NewScript(swapSource).Hash()}

const swapSource = `
local arg = ARGV[1]
local by, keep, n = struct.unpack('<ddI4', arg)
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local time, is = string.format('%016.0f', now), redis.call('GET', KEYS[1]) or ''
if #arg > 20 + n and now <= by and is == string.sub(arg, 21, 20 + n) then
  redis.call('SET', KEYS[1], string.sub(arg, 21 + n), 'PX', keep)
  return time .. 'w'
end
return time .. 'r' .. is`

// Dials says that calls make connections: see [shared.Store].
func (s *store) Dials() {}

// Update implements [shared.Store].
func (s *store) Update(
	ctx context.Context, key string, f func(now time.Time, old []byte) (value []byte, keep time.Duration, err error),
) error {
	if err := s.client.Check(); err != nil {
		return &shared.ConfigError{Key: key, Err: err}
	}
	leave, err := s.turns.Take(ctx, key)
	if err != nil {
		return failed("lock", err, false)
	}
	defer leave()
	is, err := s.ask(ctx, key, make([]byte, 20))
	if err != nil {
		return failed("read", err, false)
	}
	for {
		value, keep, err := f(is.now, is.value)
		if err != nil {
			return err
		}
		by := is.now.Add(24 * time.Hour) // by the server's clock
		if end, limited := ctx.Deadline(); limited {
			by = is.now.Add(time.Until(end))
		}
		arg, _ := binary.Append(nil, binary.LittleEndian, [2]float64{
			float64(by.UnixMicro()), float64(min(keep/time.Millisecond+1, 9e12)),
		})
		arg = binary.LittleEndian.AppendUint32(arg, uint32(len(is.value)))
		was := is.value
		is, err = s.ask(ctx, key, slices.Concat(arg, was, value))
		switch {
		case err != nil:
			return failed("write", err, perhapsWritten(err))
		case is.written:
			return nil
		case bytes.Equal(is.value, was):
			return failed("write", context.DeadlineExceeded, false) // it came too late
		}
	}
}

func failed(op string, err error, written bool) error {
	return &shared.StoreError{Store: "goredis", Op: op, What: "the value", Err: err, Written: written}
}

type found struct {
	now     time.Time // the server's
	value   []byte    // nil: none
	written bool      // the new one
}

func (s *store) ask(ctx context.Context, key string, arg []byte) (is found, err error) {
	const digits = 16
	b, err := s.client.Eval(ctx, swap, key, arg)
	if err != nil {
		return is, err
	}
	if len(b) <= digits {
		return is, fmt.Errorf("an answer of %d bytes", len(b))
	}
	micros, err := strconv.ParseInt(string(b[:digits]), 10, 64)
	is.now, is.written = time.UnixMicro(micros), b[digits] == 'w'
	if b = b[digits+1:]; len(b) > 0 {
		is.value = b
	}
	return is, err
}

// perhapsWritten says no where the server has refused, or no connection was made.
func perhapsWritten(err error) bool {
	var refused redis.Error
	var network *net.OpError
	return !errors.As(err, &refused) && !(errors.As(err, &network) && network.Op == "dial")
}
