package queue

import (
	"fmt"
	"runtime/debug"
)

// A PanicError is a panic of the caller's code, such as its own Reserver. The call that asked throws it again.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("%v\n\n%s", e.Value, e.Stack) }

func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// failure returns why the place is over, or throws its panic.
func (p *Place) failure() error { return thrown(p.err) }

func thrown(err error) error {
	if e, ok := err.(*PanicError); ok {
		panic(e)
	}
	return err
}

func caught(value any) error { return &PanicError{Value: value, Stack: debug.Stack()} }
