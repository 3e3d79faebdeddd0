package registry

import (
	"context"
	"errors"
	"io"

	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	service "github.com/lodge-mpc/lodge/services/multikey"
)

// Rules maps each method to the permission that a caller needs.
var Rules = rpc.Rules{
	"/lodge.multikey.v1.RegistryService/Announce":      rpc.Allow(rpc.Peer),
	"/lodge.multikey.v1.RegistryService/ListPublished": rpc.Allow(rpc.Peer, rpc.Client),
	"/lodge.multikey.v1.RegistryService/GetPublished":  rpc.Allow(rpc.Peer, rpc.Client),
}

// None implements the service for a party whose roster pins no context.
type None struct {
	multikeyv1.UnsafeRegistryServiceServer
}

// Announce returns NotConfigured.
func (None) Announce(context.Context, *multikeyv1.AnnounceRequest) (*multikeyv1.AnnounceResponse, error) {
	return nil, service.NotConfigured()
}

// ListPublished returns NotConfigured.
func (None) ListPublished(context.Context, *multikeyv1.ListPublishedRequest) (*multikeyv1.ListPublishedResponse, error) {
	return nil, service.NotConfigured()
}

// GetPublished returns NotConfigured.
func (None) GetPublished(*multikeyv1.GetPublishedRequest, multikeyv1.RegistryService_GetPublishedServer) error {
	return service.NotConfigured()
}

// Announce implements the service.
func (r *Registry) Announce(_ context.Context, m *multikeyv1.AnnounceRequest) (*multikeyv1.AnnounceResponse, error) {
	if n := len(m.GetRecords()); n > maxAnnounced {
		return nil, rpc.Errorf(rpc.TooLarge, "", "%d records; at most %d", n, maxAnnounced)
	}
	if err := r.accept(m.GetRecords()); err != nil {
		return nil, refused(err)
	}
	return &multikeyv1.AnnounceResponse{}, nil
}

// refused converts the error of a rejected record to an *rpc.Error.
func refused(err error) error {
	switch {
	case errors.Is(err, ErrConflict):
		return rpc.Errorf(rpc.Conflict, "ask the owner: a party must not sign two keys under one version", "%v", err)
	case errors.Is(err, service.ErrRecord), errors.Is(err, service.ErrSignature), errors.Is(err, service.ErrOwner),
		errors.Is(err, multikey.ErrSet), errors.Is(err, multikey.ErrCRS):
		return rpc.Errorf(rpc.Invalid, "compare the rosters of the parties", "%v", err)
	}
	return err
}

// ListPublished implements the service.
func (r *Registry) ListPublished(context.Context, *multikeyv1.ListPublishedRequest) (*multikeyv1.ListPublishedResponse, error) {
	set, crs := r.Context.Hash(), r.Context.CRS()
	m := &multikeyv1.ListPublishedResponse{Params: r.Context.Name, ParamsHash: set[:], CrsDigest: crs[:]}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, list := range r.book.owners {
		for _, e := range list {
			m.Keys = append(m.Keys, &multikeyv1.PublishedKey{
				Owner: uint32(e.Place), Name: r.Names[e.Place], Version: e.Version, Key: e.Key[:], State: e.State(),
				Present: e.State() == "current" && r.here(e), Record: e.Signed, Revocation: e.Revocation, WeakOwner: e.Weak(),
			})
		}
	}
	return m, nil
}

// GetPublished implements the service.
func (r *Registry) GetPublished(m *multikeyv1.GetPublishedRequest, stream multikeyv1.RegistryService_GetPublishedServer) error {
	if len(m.GetKey()) != len(multikey.KeyID{}) {
		return rpc.Errorf(rpc.Invalid, "", "an identifier of %d bytes, want %d", len(m.GetKey()), len(multikey.KeyID{}))
	}
	chunks := uint32(r.Context.Chunks())
	if m.GetFirst() > chunks {
		return rpc.Errorf(rpc.Invalid, "", "chunk %d of %d", m.GetFirst(), chunks)
	}
	in, _, file, err := r.open(multikey.KeyID(m.GetKey()))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := stream.Send(&multikeyv1.GetPublishedResponse{Header: in.Header, ChunkDigests: in.Slices()}); err != nil {
		return err
	}
	last := chunks
	if n := m.GetCount(); n > 0 {
		last = min(last, m.GetFirst()+min(n, chunks))
	}
	for i := range last {
		b, err := in.chunk()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if i < m.GetFirst() {
			continue
		}
		if err := stream.Send(&multikeyv1.GetPublishedResponse{Index: i, Chunk: b}); err != nil {
			return err
		}
	}
	return nil
}
