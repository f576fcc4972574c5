// Package grpc stands in for google.golang.org/grpc.
package grpc

import "context"

type (
	CallOption      interface{ option() }
	UnaryServerInfo struct{}
	UnaryHandler    func(ctx context.Context, req any) (any, error)
)
