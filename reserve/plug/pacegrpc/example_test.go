package pacegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/pacetest"
	"github.com/nextfree/pace/reserve/plug/pacegrpc"
)

// A client that makes 50 calls a second, and says at once which would come too late.
func ExampleNewClient() {
	limiter := reserve.Must(pace.NewBursty(50))
	paced := reserve.Must(pacegrpc.NewClient(reserve.Must(outbound.New(nil, limiter))))
	conn, err := grpc.NewClient("api.example.com:443", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(paced.Unary), grpc.WithStreamInterceptor(paced.Stream))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	limiter.PauseUntil(time.Now().Add(time.Hour)) // as a server's RetryInfo does
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = testpb.NewTestServiceClient(conn).EmptyCall(ctx, &testpb.Empty{})
	var wait *reserve.WaitError
	fmt.Println(status.Code(err), errors.As(err, &wait), wait.Wait.Round(time.Minute))
	// Output: DeadlineExceeded true 1h0m0s
}

// A server on which each user may make 2 calls a minute of each method, and all users 20 a second.
func ExampleNewServer() {
	user := func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }
	limits := reserve.Must(inbound.New([]inbound.Tier{
		inbound.PerKey("user-method", inbound.Both(user, inbound.Endpoint), reserve.Must(pace.TokenBucket(2./60, 2))),
		inbound.Global("global", reserve.Must(pace.TokenBucket(20, 20))),
	}, inbound.WithJitter(0)))
	limited := reserve.Must(pacegrpc.NewServer(limits))
	server := grpc.NewServer(grpc.UnaryInterceptor(limited.Unary), grpc.StreamInterceptor(limited.Stream))
	testpb.RegisterTestServiceServer(server, &service{})
	listener := pacetest.Listen()
	go server.Serve(listener)
	defer server.Stop()

	conn, err := grpc.NewClient("passthrough:///api.example.com", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return listener.DialContext(ctx, "", "")
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	for range 3 {
		_, err := testpb.NewTestServiceClient(conn).UnaryCall(context.Background(), &testpb.SimpleRequest{})
		fmt.Printf("%v %q\n", status.Code(err), status.Convert(err).Message())
	}
	// Output:
	// OK ""
	// OK ""
	// ResourceExhausted "Too Many Requests (\"user-method\"). Try again in 30 s."
}
