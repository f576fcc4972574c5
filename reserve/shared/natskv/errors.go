package natskv

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A TTLError says that a bucket forgets a limiter before it is full again. A limiter wraps it in a
// *[shared.ConfigError].
type TTLError struct {
	Bucket    string
	TTL, Need time.Duration
}

func (e *TTLError) Error() string {
	return fmt.Sprintf("natskv: the bucket %q forgets what is older than %v, and a limiter needs %v; "+
		"set its TTL to 0 or longer", e.Bucket, e.TTL, e.Need)
}

var errOld = errors.New("the server is older than 2.10")

// code returns 0 if the server did not answer.
func code(err error) jetstream.ErrorCode {
	var e *jetstream.APIError
	if errors.As(err, &e) {
		return e.ErrorCode
	}
	return 0
}

func conflict(err error) bool {
	return code(err) == jetstream.JSErrCodeStreamWrongLastSequence || errors.Is(err, jetstream.ErrKeyExists)
}

func perhapsWritten(err error) bool {
	return code(err) == 0 && !errors.Is(err, jetstream.ErrNoStreamResponse) && !errors.Is(err, nats.ErrDisconnected) &&
		!errors.Is(err, nats.ErrReconnectBufExceeded) && !errors.Is(err, nats.ErrConnectionClosed)
}

// wrong returns the error if waiting does not cure it. A permission violation is only the connection's last error:
// before is the last error before the request.
func (s *store) wrong(err, before error) error {
	for _, e := range []error{
		jetstream.ErrBucketNotFound, jetstream.ErrStreamNotFound, jetstream.ErrBadBucket,
		jetstream.ErrInvalidBucketName, jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount,
		errOld,
	} {
		if errors.Is(err, e) {
			return err
		}
	}
	if last := s.js.Conn().LastError(); last != before && errors.Is(last, nats.ErrPermissionViolation) {
		text := last.Error()
		if strings.Contains(text, "$KV."+s.bucket+".") || strings.Contains(text, "KV_"+s.bucket) {
			return fmt.Errorf("%w (%w)", last, err)
		}
	}
	return nil
}
