package paceconnect_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"connectrpc.com/connect"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/paceconnect"
)

// A handler that lets 2 calls a minute pass, and a client that makes 50 a second.
func ExampleNewInterceptor() {
	limits := reserve.Must(inbound.New([]inbound.Tier{
		inbound.Global("global", reserve.Must(pace.TokenBucket(2./60, 2))),
	}, inbound.WithJitter(0)))
	limited := reserve.Must(paceconnect.NewInterceptor(nil, limits))
	server := httptest.NewServer((&service{}).handler(connect.WithInterceptors(limited)))
	defer server.Close()

	limiter := reserve.Must(pace.NewBursty(50))
	paced := reserve.Must(paceconnect.NewInterceptor(reserve.Must(outbound.New(nil, limiter)), nil))
	client := connect.NewClient[text, text](server.Client(), server.URL+unary, connect.WithInterceptors(paced))
	for range 3 {
		_, err := client.CallUnary(context.Background(), connect.NewRequest(&text{}))
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// <nil>
	// resource_exhausted: Too Many Requests ("global"). Try again in 30 s.
}
