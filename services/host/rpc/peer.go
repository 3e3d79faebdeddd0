package rpc

import "google.golang.org/grpc"

// PeerConn is another party of the roster and the connection to it.
type PeerConn struct {
	Name string // as in the roster, for metrics and errors
	Conn grpc.ClientConnInterface
}
