package pacetest_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// day is in a year whose seconds since 1970 have ten digits.
var day = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// pass lets time pass in a bubble.
func pass(d time.Duration) { <-time.After(d) }

// failures is a TB that keeps what it is told.
type failures []string

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }
