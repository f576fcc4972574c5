package shared_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// noServer is a client that is never asked.
type noServer struct{}

func (*noServer) Eval(context.Context, *shared.Script, string, []byte) ([]byte, error) {
	panic("not reached")
}

// What is nil is reported where it is given.
func TestNil(t *testing.T) {
	policy, fine := reserve.Must(pace.Bursty(1)), shared.WithTimeout(time.Second)
	for _, c := range []struct {
		want   string
		client shared.Scripter
		policy *reserve.Policy
		opts   []shared.Option
	}{
		{"client is <nil>; want a client", nil, policy, nil},
		{"client is <nil>; want a client", (*noServer)(nil), policy, nil},
		{"policy is <nil>; want a policy", &noServer{}, nil, nil},
		{"option 1 is <nil>; want an option", &noServer{}, policy, []shared.Option{nil}},
		{"option 2 is <nil>; want an option", &noServer{}, policy, []shared.Option{fine, nil, nil}},
	} {
		_, one := shared.New(c.client, "api", c.policy, c.opts...)
		_, many := shared.NewKeyed(c.client, c.policy, c.opts...)
		for _, err := range []error{one, many} {
			require.EqualError(t, err, "shared: "+c.want)
			require.IsType(t, &reserve.ValueError{}, err)
		}
	}
}
