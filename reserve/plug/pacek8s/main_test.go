package pacek8s

import (
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
)

var (
	_ flowcontrol.RateLimiter            = (*RateLimiter)(nil)
	_ workqueue.TypedRateLimiter[string] = (*QueueLimiter[string])(nil)
	_ workqueue.TypedRateLimiter[any]    = (*QueueLimiter[any])(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
