package pacegrpc

import (
	"context"
	"io"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/nextfree/pace/reserve/plug/internal/rpc"
)

// Stream is a grpc.StreamClientInterceptor: a stream waits for its permits before it is opened.
func (c *Client) Stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	open grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return c.open(ctx, desc, conn, method, open, opts, false)
}

// Messages is a grpc.StreamClientInterceptor: each message that a stream sends waits for its
// permits, and the opening for none. If they would come after the stream's deadline SendMsg fails
// at once, and the stream is over.
func (c *Client) Messages(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	open grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return c.open(ctx, desc, conn, method, open, opts, true)
}

func (c *Client) open(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	open grpc.Streamer, opts []grpc.CallOption, messages bool,
) (_ grpc.ClientStream, err error) {
	s := &stream{one: !desc.ServerStreams, attempts: rpc.Attempts{Transport: c.transport}}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, s.attempts.Abandon) // for callers that leave by their context
	s.ctx, s.done = ctx, func() { stop(); cancel() }
	defer func() {
		if s.ClientStream == nil { // it was not opened, or something has panicked
			s.giveUp()
		}
	}()
	if messages {
		s.request = func(message any) *http.Request { return request(ctx, conn, method, message) }
	} else if err := s.attempts.Take(request(ctx, conn, method, nil)); err != nil {
		return nil, refusal(ctx, err)
	}
	opened, err := open(ctx, desc, conn, method, opts...)
	if err != nil {
		end(&s.attempts, err)
		return nil, err
	}
	s.ClientStream = opened
	return s, nil
}

// A stream listens to what the server says. Streams end by an error of one of their methods, by the
// server's only message, or by their context.
type stream struct {
	grpc.ClientStream
	ctx      context.Context
	done     func()                  // of the context
	one      bool                    // the server sends one message
	request  func(any) *http.Request // of a message that is paced; nil: none is
	attempts rpc.Attempts
}

func (s *stream) SendMsg(message any) error {
	if s.request != nil {
		if err := s.attempts.Take(s.request(message)); err != nil && !s.attempts.Ended() {
			err = refusal(s.ctx, err)
			s.giveUp()
			return err
		}
	}
	err := s.ClientStream.SendMsg(message)
	if err != nil && err != io.EOF { // of that, RecvMsg tells more
		s.giveUp()
	}
	return err
}

func (s *stream) Header() (metadata.MD, error) {
	header, err := s.ClientStream.Header()
	if err != nil {
		end(&s.attempts, err)
		s.done()
	}
	return header, err
}

func (s *stream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	if err == nil && !s.one {
		s.attempts.Accept(func() http.Header {
			header, _ := s.ClientStream.Header() // it is there
			return headerOf(header)
		})
		return nil
	}
	header, _ := s.ClientStream.Header() // it is there, or will not come
	if err == io.EOF {
		end(&s.attempts, nil, header, s.Trailer())
	} else {
		end(&s.attempts, err, header, s.Trailer())
	}
	s.done()
	return err
}

// giveUp ends a stream of which the server has said nothing.
func (s *stream) giveUp() {
	s.attempts.Abandon()
	s.done()
}
