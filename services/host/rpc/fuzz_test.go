package rpc

import (
	"testing"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/services/host/pki"
)

// A file of trust anchors is refused, or yields exactly the certificates that it contains.
func FuzzRoots(f *testing.F) {
	a, err := pki.NewAuthority("fuzz", time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	private, _, err := pki.NewSigningKey()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(a.PEM())
	f.Add(append(a.PEM(), private...))
	f.Add(a.PEM()[:len(a.PEM())/2])
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		certs, err := pki.ParseCertificates(b)
		if err != nil {
			return
		}
		if len(certs) == 0 {
			t.Fatal("no certificate is enough")
		}
		for _, c := range certs {
			if !roots(certs).contains(c) {
				t.Error("a root is not among the roots")
			}
		}
	})
}

// Any status of a server becomes an error with a code, which does not change when it is forwarded.
func FuzzFromError(f *testing.F) {
	for _, err := range []error{Errorf(Burnt, "use another", "epoch %d", 1), Errorf("nonsense", "", ""), &Error{Code: RateLimited, Retry: 1234567890}, status.Error(5, "gone")} {
		s, _ := status.FromError(err)
		b, err := proto.Marshal(s.Proto())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := status.New(0, "").Proto()
		if proto.Unmarshal(b, p) != nil || p.GetCode() == 0 {
			return
		}
		e := FromError(status.FromProto(p).Err())
		if again := FromError(e.GRPCStatus().Err()); again.Code != e.Code || again.What != e.What || again.Next != e.Next || again.Retry != e.Retry {
			t.Errorf("%v travels as %v", e, again)
		}
	})
}
