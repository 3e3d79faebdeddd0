package rpc

import (
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// The texts of an error are limited in length on both sides of a connection, because they may quote
// a caller's input and are logged.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("ü", 1<<20)
	s := Errorf(NotFound, long, "no %s", long).GRPCStatus()
	if size := len(s.Message()) + proto.Size(s.Proto()); size > 7*maxText {
		t.Errorf("%d bytes", size)
	}
	e := FromError(status.Error(codes.NotFound, long))
	if len(e.What) > maxText+3 || !utf8.ValidString(e.What) || !strings.HasSuffix(e.What, "...") || e.Code != NotFound {
		t.Errorf("%d bytes", len(e.What))
	}
	if e := FromError(Errorf(NotFound, "", "short").GRPCStatus().Err()); e.What != "short" {
		t.Errorf("%q", e.What)
	}
}
