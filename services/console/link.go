package console

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	consolev1 "github.com/lodge-mpc/lodge/proto/lodge/console/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Rules lets every authenticated caller make a link that signs a browser in as this caller.
var Rules = rpc.Rules{consolev1.ConsoleService_CreateLink_FullMethodName: rpc.Anyone.Bounded(1 << 10)}

// Limits on links.
const (
	linkTime = time.Minute
	linksAll = 256 // unused links
	linksOne = 8   // of one identity
)

// linkPath is the path of links, before their secret.
const linkPath = "/signin/link/"

// link describes an unused link.
type link struct {
	name    string // of the identity
	proof   rpc.Proof
	expires time.Time
}

// links holds the unused links.
type links struct {
	now func() time.Time

	mu   sync.Mutex
	list map[digest]link
}

// add adds a link, and returns its secret.
func (l *links) add(name string, proof rpc.Proof) (secret string, expires time.Time, refused *rpc.Error) {
	secret, key := newSecret()
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	own := 0
	for k, x := range l.list {
		if !now.Before(x.expires) {
			delete(l.list, k)
		} else if x.name == name {
			own++
		}
	}
	//lodge:check console/links/bound [drop=own >= linksOne] [drop=len(l.list) >= linksAll]
	//  [run=TestTooManyLinks] unused links fill the memory
	if own >= linksOne || len(l.list) >= linksAll {
		return "", time.Time{}, errBusy("use a link, or wait until the oldest expires", "%s has %d unused links, of %d", name, own, len(l.list))
	}
	expires = now.Add(linkTime)
	l.list[key] = link{name, proof, expires}
	return secret, expires, nil
}

// take removes the link with a secret, and returns the proof of its maker.
func (l *links) take(secret string) (rpc.Proof, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := digestOf(secret)
	x, ok := l.list[key]
	//lodge:check console/links/once [run=TestLink] a link signs two browsers in
	if ok {
		delete(l.list, key)
	}
	//lodge:check console/links/late [swap=ok && l.now().Before(x.expires)=>ok] [run=TestLink] a link
	//  is valid for longer than a minute
	return x.proof, ok && l.now().Before(x.expires)
}

// CreateLink implements lodge.console.v1.
func (c *Console) CreateLink(ctx context.Context, _ *consolev1.CreateLinkRequest) (*consolev1.CreateLinkResponse, error) {
	if !c.enabled() {
		return nil, rpc.Errorf(rpc.NotFound, "set console.listen in its configuration", "%s has no console", c.opts.Name)
	}
	caller, _ := rpc.Caller(ctx)
	proof, ok := rpc.ProofOf(ctx)
	if !ok {
		return nil, rpc.Errorf(rpc.Unauthenticated, "", "the call does not say how its caller authenticated")
	}
	secret, expires, refused := c.links.add(caller.Name, proof)
	if refused != nil {
		return nil, refused
	}
	_, port, _ := net.SplitHostPort(c.opts.Config.Listen)
	if c.port.Load() != 0 {
		port = strconv.Itoa(int(c.port.Load()))
	}
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		return nil, err
	}
	return &consolev1.CreateLinkResponse{Path: linkPath + secret, Origin: c.opts.Config.URL, Port: uint32(n), Expires: timestamppb.New(expires)}, nil
}
