package rpc

import (
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

// Dial returns a connection to the member at address, whose certificate must carry the pinned
// identity. It connects on first use and reconnects by itself.
func Dial(address, identity string, c *Credentials, more ...DialOption) (*grpc.ClientConn, error) {
	if c == nil {
		return nil, errors.New("rpc: dialling needs TLS credentials")
	}
	if identity == "" {
		return nil, errors.New("rpc: dialling needs the peer's identity")
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(credentials.NewTLS(c.Client(identity))),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(MaxMessage),
			grpc.MaxCallSendMsgSize(MaxMessage),
		),
		grpc.WithMaxHeaderListSize(maxHeaders), // also for the peer's errors
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true}),
	}
	for _, m := range more {
		m(&options)
	}
	return grpc.NewClient("passthrough:///"+address, options...)
}
