package bykey_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// What is nil is reported where it is given.
func TestNil(t *testing.T) {
	none := func(string) (*reserve.Policy, error) { return nil, nil }
	for want, make := range map[string]func(){
		"keyed: policy is <nil>; want a function":   func() { keyed.New[string](nil) },
		"keyed: an option is <nil>; want an option": func() { keyed.New(none, keyed.WithMaxKeys(1), nil) },
	} {
		func() {
			defer func() { require.EqualError(t, recover().(error), want) }()
			make()
		}()
	}
}
