package reserve_test

import (
	"errors"
	"testing"

	"go.uber.org/goleak"
)

var errGone = errors.New("the caller has gone")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
