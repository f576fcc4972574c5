package natskv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/turns"
)

var buckets = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// Open returns a store in a bucket, which must exist. It asks no server. There is nothing to close but the
// connection. It returns a *[reserve.ValueError] for a nil js, and for a name that NATS does not allow.
func Open(js jetstream.JetStream, bucket string) (shared.Store, error) {
	valueError := invalid.In("natskv")
	if js == nil {
		return nil, valueError("JetStream", nil, "a JetStream")
	}
	if !buckets.MatchString(bucket) {
		return nil, valueError("bucket", bucket, "a name of letters, digits, dashes and underscores")
	}
	return &store{js: js, bucket: bucket}, nil
}

type store struct {
	js     jetstream.JetStream
	bucket string
	turns  turns.Turns // callers of one process would only get in each other's way
	crowd  crowd       // and processes
	kv     atomic.Pointer[jetstream.KeyValue]
}

// Update implements [shared.Store].
func (s *store) Update(
	ctx context.Context, key string, f func(now time.Time, old []byte) (value []byte, keep time.Duration, err error),
) error {
	ctx, cancel := early(ctx)
	defer cancel()
	leave, err := s.turns.Take(ctx, key)
	if err != nil {
		return s.error("lock", err, false)
	}
	defer leave()
	hash := sha256.Sum256([]byte(key))
	name, before := hex.EncodeToString(hash[:16]), s.js.Conn().LastError()
	for lost := 0; ; lost++ {
		s.crowd.wait(ctx, key, lost)
		begin := time.Now()
		kv, is, err := s.read(ctx, name)
		if err != nil {
			return s.failed(ctx, key, "read", err, before, false)
		}
		value, keep, err := f(is.now, is.value)
		switch {
		case err != nil:
			return err
		case is.ttl > 0 && keep > is.ttl:
			return &shared.ConfigError{Key: key, Err: &TTLError{Bucket: s.bucket, TTL: is.ttl, Need: keep}}
		case !s.js.Conn().IsConnected(): // it might be sent later
			err = nats.ErrDisconnected
		case is.revision == 0:
			_, err = kv.Create(ctx, name, value)
		default:
			_, err = kv.Update(ctx, name, value, is.revision)
		}
		if err != nil && !conflict(err) {
			return s.failed(ctx, key, "write", err, before, perhapsWritten(err))
		}
		if s.crowd.tried(key, err == nil, time.Since(begin)); err == nil {
			return nil
		}
	}
}

// early returns a context that ends a tenth of its time earlier, at most 20 ms: only then NATS tells that a user may
// not write, and a caller that leaves at its deadline must hear of that.
func early(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end.Add(-min(20*time.Millisecond, time.Until(end)/10)))
}

func (s *store) failed(ctx context.Context, key, op string, err, before error, written bool) error {
	if refused := s.wrong(err, before); refused != nil {
		return &shared.ConfigError{Key: key, Err: s.error(op, refused, written)}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return s.error(op, err, written)
}

func (s *store) error(op string, err error, written bool) error {
	return &shared.StoreError{
		Store: "natskv", Op: op, What: fmt.Sprintf("the bucket %q", s.bucket), Err: err, Written: written,
	}
}

type entry struct {
	value    []byte // nil: none
	revision uint64
	now      time.Time // of the server, before it was read
	ttl      time.Duration
}

func (s *store) read(ctx context.Context, name string) (kv jetstream.KeyValue, e entry, err error) {
	if !s.js.Conn().IsConnected() {
		return nil, e, nats.ErrDisconnected
	}
	if known := s.kv.Load(); known != nil {
		kv = *known
	} else if kv, err = s.js.KeyValue(ctx, s.bucket); err != nil {
		return nil, e, err
	} else {
		s.kv.Store(&kv)
	}
	stream, err := s.js.Stream(ctx, "KV_"+s.bucket)
	if err != nil {
		return nil, e, err
	}
	info := stream.CachedInfo()
	if e.now, e.ttl = info.TimeStamp, info.Config.MaxAge; e.now.IsZero() {
		return nil, e, errOld
	}
	// After the time, so that few others write before this writes. A time a little before the value's counts as no
	// time.
	got, err := kv.Get(ctx, name)
	switch {
	case err == nil:
		e.value, e.revision = got.Value(), got.Revision()
	case errors.Is(err, jetstream.ErrKeyNotFound):
		err = nil
	}
	return kv, e, err
}
