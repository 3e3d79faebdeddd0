package party

import (
	"errors"
	"io"
	"io/fs"
	"runtime"

	"google.golang.org/grpc"

	engine "github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/multikey/circuits"
	"github.com/lodge-mpc/lodge/services/multikey/registry"
	"github.com/lodge-mpc/lodge/services/offline/evaluator"
	"github.com/lodge-mpc/lodge/services/store/vault"
)

// openRegistry opens and serves the registry of public keys, if the roster pins a context.
func (p *party) openRegistry() (err error) {
	if p.multikey == nil {
		multikeyv1.RegisterRegistryServiceServer(p.server, registry.None{})
		return nil
	}
	f := p.file
	c := registry.Config{
		Context: p.multikey, Self: f.Index, Signers: f.Roster.SigningKeys(), Source: ownKeys{p.vault}, Dir: f.Multikey.Dir,
		Limit: int64(f.Multikey.MaxKeys), Metrics: p.metrics, Log: p.log, Peers: make([]grpc.ClientConnInterface, len(p.conns)),
	}
	for i, m := range f.Roster.Parties {
		c.Names = append(c.Names, m.Name)
		if p.conns[i] != nil {
			c.Peers[i] = p.conns[i]
		}
	}
	if p.published, err = registry.New(c); err != nil {
		return err
	}
	multikeyv1.RegisterRegistryServiceServer(p.server, p.published)
	return nil
}

// serveEvaluation serves evaluation with the keys of the registry.
func (p *party) serveEvaluation() {
	p.evaluation = circuits.New(circuits.Config{
		Context: p.multikey, Keys: p.published, Limits: p.file.Multikey, Workers: runtime.GOMAXPROCS(0), Metrics: p.metrics, Log: p.log,
		Rotate: func(e *engine.Evaluator) engine.Rotate {
			return p.evaluators.Rotate(&evaluator.Gates{Scheme: p.multikey.Scheme, Own: e.Rotate, Keys: p.published.Load})
		},
	})
	multikeyv1.RegisterEvaluationServiceServer(p.server, p.evaluation)
}

// ownKeys gives the registry access to the party's own keys in its vault.
type ownKeys struct{ vault *vault.Vault }

// Records implements registry.Source.
func (o ownKeys) Records() (list [][]byte, err error) {
	keys, err := o.vault.MultikeyKeys()
	for _, k := range keys {
		for _, signed := range [][]byte{k.Record, k.Revocation} {
			if len(signed) > 0 {
				list = append(list, signed)
			}
		}
	}
	return list, err
}

// Open implements registry.Source.
func (o ownKeys) Open(id engine.KeyID) (io.ReadCloser, error) {
	keys, err := o.vault.MultikeyKeys()
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if k.Key == [32]byte(id) {
			return o.vault.OpenMultikeyPublic(k.Version)
		}
	}
	return nil, errors.Join(fs.ErrNotExist, registry.ErrDigests)
}
