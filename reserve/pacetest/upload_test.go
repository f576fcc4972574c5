package pacetest_test

import (
	"bytes"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/pacetest"
)

// In a bubble, uploads that a server does not read, because it refuses them or has a handler that
// does not look at them, end with the test: net/http waits for half a second before it closes their
// connections.
func TestUploads(t *testing.T) {
	unread := pacetest.WithHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, test := range map[string]struct {
		bytes int
		opts  []pacetest.Option
		want  []int
	}{
		"small":  {200 << 10, nil, []int{200, 429}},
		"large":  {1 << 20, nil, []int{200, 429}},
		"unread": {1 << 20, []pacetest.Option{unread}, []int{200, 429}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := reserve.Must(pacetest.New(pacetest.Window(1, time.Minute), test.opts...))
				client := pacetest.Client(t, server)
				for _, want := range test.want {
					res, err := client.Post("http://example.org", "text/plain", bytes.NewReader(make([]byte, test.bytes)))
					require.NoError(t, err)
					require.Equal(t, want, res.StatusCode)
					require.NoError(t, res.Body.Close())
				}
			})
		})
	}
}
