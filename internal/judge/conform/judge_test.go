package conform

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/model"
)

// A judge does the same to a limiter and to the model. After each operation it compares all that can be asked: all
// times, NextFree, Stored, and what is refused.
//
// Whatever the limiter gives earlier, or more of, than the model is a fault. What it gives later is
// counted. From then on the two have different histories, so the queue is not looked at any further.
//
// The limiter counts in whole nanoseconds, the model in fractions. So, but for exact kinds, two times are the same if
// they are no further apart than slack. Before an operation is done it is tried on a copy of the model. Where that had
// to decide by less than the slack, either outcome would be right, and another operation is done instead.
type judge struct {
	kind     kind
	subject  subject
	model    *model.Limiter
	exact    bool
	constant bool // the rate was never changed
	retimed  bool
	now      time.Duration
	tickets  []*ticket
	pauses   []stretch
	history  []string

	early string // how the limiter was earlier than the model, or broke a promise; empty if not
	late  []late // how it was later
}

// A ticket is one reservation, or what a TryAcquire got.
type ticket struct {
	subject, model int
	permits        int // that were or may be used
	tried          bool
	settled        bool
	at             time.Duration // when last asked
	gone           bool          // it was seen that it may go
	forgotten      bool          // it is of a key that was as good as new since, and may have been forgotten
}

type stretch struct{ from, to time.Duration }

// late is one thing that came later than it should.
type late struct {
	what string
	by   time.Duration
	slot bool
}

func newJudge(k kind, s subject) *judge {
	return &judge{kind: k, subject: s, model: k.model(), exact: k.exact(), constant: true}
}

// slack is a nanosecond for the rounding of the promise itself, and one for each operation. With each a request may
// have been granted, at a whole nanosecond where the model has a fraction.
func (j *judge) slack() time.Duration {
	if j.exact {
		return 0
	}
	slack := time.Duration(2 + len(j.history))
	if w := j.kind.warm; w != nil { // a nanosecond of idle time makes a permit dearer by so much
		slack *= time.Duration(2 + 2*w.ColdFactor)
	}
	return slack
}

func (j *judge) note(format string, args ...any) {
	j.history = append(j.history, fmt.Sprintf("[%v] ", j.now)+fmt.Sprintf(format, args...))
}

func (j *judge) trace() string {
	return j.kind.String() + "\n  " + strings.Join(j.history, "\n  ") + "\n"
}

func (j *judge) over() bool { return j.early != "" || len(j.late) > 0 }

// compare takes a time, or in its place a number of permits as a time, of the limiter's and the model's.
func (j *judge) compare(what string, got time.Duration, want float64, slot bool) {
	slack := float64(j.slack()) + math.Abs(want)*1e-14
	switch difference := float64(got) - want; {
	case difference < -slack-1 || j.exact && difference < 0:
		if j.early == "" {
			j.early = fmt.Sprintf("%s: %v, the model has %v", what, got, time.Duration(want))
		}
	case difference > slack:
		text := fmt.Sprintf("%s: %v, the model has %v", what, got, time.Duration(want))
		j.late = append(j.late, late{text, time.Duration(difference), slot})
	}
}

// unsure says whether the model would decide by a hair.
func (j *judge) unsure(do func(m *model.Limiter)) bool {
	if j.exact {
		return false
	}
	m := j.model.Clone()
	m.Closest = math.Inf(1)
	do(m)
	return m.Closest <= float64(2*j.slack())
}

func (k kind) judge(tb testing.TB) *judge {
	require.Positive(tb, k.unit)
	return newJudge(k, k.real(tb))
}
