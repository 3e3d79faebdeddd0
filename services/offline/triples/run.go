package triples

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	"github.com/lodge-mpc/lodge/engine/sample"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/offline/evaluator"
	"github.com/lodge-mpc/lodge/services/offline/keyring"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// run is one session: a batch, and the MAC key that it needs if there is none.
type run struct {
	*Service
	spec *jobv1.SessionSpec
	// choose has Memory choose the block of matrices.
	choose bool

	opens  func() error // see session.Entry.Opens
	age    uint64       // among the sessions that take turns
	claim  *claim
	keys   *keyring.Keys
	scheme *gbfv.Scheme
	plan   *triple.Plan
	macKey *params.Instance
	macID  string // of the MAC key that was used
	held   vaultkeys.MACKey
	fresh  bool // whether it was made in this session
	mac    triple.MACKey
	id     round.Digest
	proved bool // whether the keys of the epoch are proved
	// opened is set when this party is about to open its combinations of the MAC check, and passed
	// when its own check has passed.
	opened, passed bool
}

// Memory implements session.Protocol.
func (r *run) Memory() (uint64, error) {
	epoch, err := r.ring.Epoch(r.spec.GetEpoch(), job.PurposeName(r.spec.GetPurpose()))
	if err != nil {
		return 0, err
	}
	if epoch.Params != r.spec.GetParams() {
		return 0, rpc.Errorf(rpc.Invalid, "", "epoch %d was made with %s, not %s", r.spec.GetEpoch(), epoch.Params, r.spec.GetParams())
	}
	r.proved = epoch.KeygenSecurity == params.Proved
	if r.scheme, err = r.ring.Scheme(r.spec.GetParams(), r.spec.GetField()); err != nil {
		return 0, err
	}
	r.plan, r.macKey, err = plan.Batch(r.spec, keyring.SetOf(epoch, r.scheme), r.parties, int(epoch.Dim), r.choose)
	var known *rpc.Error
	switch {
	case errors.As(err, &known):
		return 0, err
	case err != nil:
		next, dim := "`lodge params show` lists the possible sizes", r.spec.GetDim()
		if r.choose {
			dim = 0
		}
		if block := max(dim, 2); job.Shaped(r.spec.GetKind()) && epoch.Dim < block {
			if r.choose {
				block = 128
			}
			next = fmt.Sprintf("`lodge jobs submit --kind keys --dim %d` makes an epoch whose keys serve such blocks", block)
		}
		return 0, rpc.Errorf(rpc.Invalid, next, "%v", err)
	}
	keys, err := r.ring.MemoryBytes(epoch)
	workers := r.ring.Workers()
	return keys + uint64(max(r.plan.MemoryBytes(workers), popk.MemoryBytes(r.macKey, r.parties, true, workers)*3/2)), err
}

// Claim implements session.Claimant.
func (r *run) Claim() (release func(), err error) {
	if r.claim, err = r.claims.enter(slotOf(r.spec), !r.proved); err != nil {
		return nil, err
	}
	return r.claim.leave, nil
}

// Run implements session.Protocol.
func (r *run) Run(ctx context.Context, s *session.Entry) (*session.Stored, error) {
	r.opens, r.age = s.Opens, r.turns.join()
	var err error
	if r.keys, err = r.ring.Load(r.spec.GetEpoch(), job.PurposeName(r.spec.GetPurpose())); err != nil {
		return nil, err
	}
	defer r.keys.Release()
	s.ProvedUnder(r.keys.ProofKey)
	if err := r.vault.SpendDecryptions(r.spec.GetEpoch(), uint64(r.plan.Decryptions())); err != nil {
		return nil, vaulterr.RPC(err, "this batch")
	}
	defer func() { r.mac.Share.Wipe() }()
	held, err := r.findMACKey()
	if err != nil {
		return nil, err
	}
	result, err := session.Drive(ctx, s, protocol, r.terms(), func(rs round.Session, source *sample.Source) (round.Transition[triple.Result], error) {
		r.id = rs.ID
		t := round.Then(triple.AgreeOnMACKey(rs, held), func(_ context.Context, same bool) (round.Transition[triple.Result], error) {
			if same {
				return r.batch(rs, source)
			}
			return r.withFreshKey(rs, source)
		})
		return round.Then(t, func(_ context.Context, result triple.Result) (round.Transition[triple.Result], error) {
			return r.accept(rs, result), nil
		}), nil
	})
	if ended := r.endCheck(err); err == nil {
		err = ended
	}
	if err != nil {
		result.Wipe()
		return nil, err
	}
	defer result.Wipe()
	s.Enter(jobv1.JobState_JOB_STATE_STORING)
	return r.store(&result, s.Broadcasts(verdict.Name))
}

// protocol is the name of the protocol in the terms of its sessions.
const protocol = plan.Triples

// terms returns the hash of the inputs of the protocol: the instance, and the key under which
// parties prove and decrypt.
func (r *run) terms() round.Digest {
	return plan.Terms(protocol, r.plan.Instance, r.keys.PublicHash)
}

// findMACKey loads the active MAC key of this epoch, field and tenant, if there is one, and names
// it.
func (r *run) findMACKey() (round.Digest, error) {
	var err error
	r.held, err = r.vault.FindMACKey(r.spec.GetEpoch(), r.spec.GetField(), r.spec.GetTenant())
	if errors.Is(err, vaulterr.ErrNotFound) {
		return round.Digest{}, nil
	}
	if err != nil {
		return round.Digest{}, err
	}
	if r.mac, err = loadMACKey(r.vault, r.held.ID, r.scheme); err != nil {
		return round.Digest{}, err
	}
	r.macID = r.held.ID
	return round.Hash("lodge mac key", []byte(r.held.ID), r.held.Digest[:]), nil
}

// withFreshKey makes a MAC key first. A key that only some parties hold is retired, unless another
// session uses it: tuples released under it stay valid at the parties that hold it.
func (r *run) withFreshKey(rs round.Session, source *sample.Source) (round.Transition[triple.Result], error) {
	if err := r.claim.make(); err != nil {
		return round.Transition[triple.Result]{}, session.Refuse(rpc.FromError(err))
	}
	if r.macID != "" {
		if err := r.vault.RetireMACKey(r.macID, "not all parties hold it"); err != nil {
			return round.Transition[triple.Result]{}, err
		}
		r.note(audit.MACKeyRetired, "not all parties hold it")
	}
	r.fresh, r.macID = true, "mac-"+hex.EncodeToString(rs.ID[:8])
	t, err := triple.StartMACKey(triple.MACKeyConfig{
		Session: rs, Scheme: r.scheme, Instance: r.macKey, Public: r.keys.Public.Public, KeyHash: r.keys.PublicHash,
		Source: source.Sub("mac key"), Workers: r.ring.Workers(),
	})
	if err != nil {
		return round.Transition[triple.Result]{}, err
	}
	return round.Then(t, func(_ context.Context, m triple.MACKey) (round.Transition[triple.Result], error) {
		r.mac.Share.Wipe() // of the key that is given up
		r.mac = m
		return r.batch(rs, source)
	}), nil
}

func (r *run) batch(rs round.Session, source *sample.Source) (round.Transition[triple.Result], error) {
	r.mac.Operand = r.operand.of(r.macID, r.scheme, r.mac.Ciphertext)
	return triple.Start(triple.Config{
		Session: rs, Plan: r.plan, Scheme: r.scheme, Keys: r.keys.Public.Keys(r.scheme), Public: r.keys.Public.Public,
		KeyHash: r.keys.PublicHash, Secret: r.keys.Secret, MAC: r.mac, Source: source.Sub("batch"), Workers: r.ring.Workers(),
		Opening: r.opening, Turn: r.turn, Evaluator: r.evaluators.For(evaluator.Under{
			Scheme: r.scheme, Keys: r.keys.Public, KeysDigest: r.keys.Epoch.Digest, MACKey: r.mac.Ciphertext, Operand: r.mac.Operand,
		}),
	})
}

// turn waits until no older session computes products of the same kind and size.
func (r *run) turn(ctx context.Context) (leave func(), err error) {
	s := r.spec
	class := fmt.Sprintf("%v %s %s %d %v", r.plan.Kind, s.GetParams(), s.GetField(), s.GetDim(), r.plan.Shape)
	return r.turns.take(ctx, class, r.age)
}

// store writes the batch, and the MAC key if it is new, locked.
func (r *run) store(result *triple.Result, accepted []runner.Broadcast) (*session.Stored, error) {
	b := stock.Batch{
		ID: session.Name(r.spec.GetRef()), Epoch: r.spec.GetEpoch(), MACKey: r.macID,
		Params: r.spec.GetParams(), Field: r.spec.GetField(), Kind: r.plan.Kind.String(), Dim: uint32(r.plan.Dim),
		InputParty: r.spec.GetInputParty(), NoSacrifice: r.spec.GetNoSacrifice(), Count: uint64(result.Count), TupleBytes: uint64(tupleBytes(r.scheme.Field, r.plan, result)),
		Tenant: r.spec.GetTenant(), Digest: result.Digest, SessionID: r.id, Created: session.Now(),
	}.Shaped(r.plan.Shape)
	var err error
	if b.Verdict, err = verdictOf(accepted, r.parties); err != nil {
		return nil, err
	}
	w, err := r.vault.NewBatch(b)
	if err != nil {
		return nil, vaulterr.RPC(err, "this batch")
	}
	if err := writeShares(w, r.scheme.Field, r.plan, result); err != nil {
		w.Abort()
		return nil, err
	}
	var fresh *vaultkeys.NewMACKey
	if r.fresh {
		fresh = newMACKey(r, b)
		defer clear(fresh.Secret)
	}
	if err := w.Commit(fresh); err != nil {
		if _, gone := r.ring.Epoch(b.Epoch, job.PurposeName(r.spec.GetPurpose())); errors.Is(err, vaulterr.ErrState) && gone != nil {
			return nil, session.Refuse(rpc.FromError(gone)) // it drains since the session began
		}
		return nil, vaulterr.RPC(r.unlessGone(err), "this batch")
	}
	return Locked(r.vault, b, r.Sessions), nil
}

// Locked is a stored batch that waits for activation, which takes the signed verdicts of all
// parties.
func Locked(v Vault, b stock.Batch, of *session.Registry) *session.Stored {
	bits, security := 0, ""
	if set, err := params.Lookup(b.Params); err == nil {
		bits = set.StatSecurityBits()
	}
	if e, err := v.Epoch(b.Epoch); err == nil {
		security = e.KeygenSecurity
	}
	return &session.Stored{
		Digest: b.Digest, Epoch: b.Epoch, BatchID: b.ID, Count: b.Count, Security: security, StatBits: bits,
		Activate: func() error {
			//lodge:check triples/verdict/activated [run=TestActivation|TestABatch] a batch is
			//  activated without a look at its verdicts
			if err := accepted(&b, of.Keys); err != nil {
				return errors.Join(err, v.RevokeBatch(b.ID, "not all parties of this roster have signed that they accept it"))
			}
			return vaulterr.RPC(v.ActivateBatch(b.ID), "batch "+b.ID)
		},
		Discard:    func(reason string) error { return v.RevokeBatch(b.ID, reason) },
		OnActivate: func() { of.Metrics.Count(metrics.TuplesStored, int(b.Count), b.Kind, b.Field) },
	}
}

// clears returns the number of plaintext values that follow this party's shares of a tuple.
func clears(r *triple.Result) int { return min(1, len(r.Clear.W)) }

// tupleBytes returns the length of this party's record of a tuple.
func tupleBytes(f *field.Field, p *triple.Plan, r *triple.Result) int {
	a, b, c := p.Elements()
	return (2*(a+b+c) + clears(r)) * f.Size()
}

// shareBuffer is about how many bytes of shares are encoded at a time.
const shareBuffer = 64 << 10

// writeShares writes tuple by tuple: a, b, c and their MACs, matrices, images and kernels
// row-major, and at the owner of input masks their values in clear. Elements are encoded many at a
// time.
func writeShares(w io.Writer, f *field.Field, p *triple.Plan, r *triple.Result) error {
	na, nb, nc := p.Elements()
	tuple := tupleBytes(f, p, r)
	several := max(1, shareBuffer/tuple)
	buf, part := make([]byte, several*tuple), make([]byte, several*max(na, nb, nc)*f.Size())
	defer clear(buf)
	defer clear(part)
	for t := 0; t < r.Count; t += several {
		k := min(several, r.Count-t)
		at := 0
		for _, x := range []struct {
			v field.Vec
			n int
		}{{r.A, na}, {r.B, nb}, {r.C, nc}, {r.MACA, na}, {r.MACB, nb}, {r.MACC, nc}, {r.Clear, clears(r)}} {
			if x.n == 0 {
				continue
			}
			size := x.n * f.Size()
			f.EncodeVec(part[:k*size], x.v.Slice(t*x.n, (t+k)*x.n))
			for i := range k {
				copy(buf[i*tuple+at:], part[i*size:(i+1)*size])
			}
			at += size
		}
		if _, err := w.Write(buf[:k*tuple]); err != nil {
			return err
		}
	}
	return nil
}

// A stored MAC key is its share and the two polynomials of its ciphertext.

func newMACKey(r *run, b stock.Batch) *vaultkeys.NewMACKey {
	frames := triple.EncodeCiphertext(r.scheme, r.mac.Ciphertext)
	secret := make([]byte, r.scheme.Field.Size(), r.scheme.Field.Size()+len(frames[0])+len(frames[1]))
	r.scheme.Field.Encode(secret, r.mac.Share.At(0))
	secret = append(append(secret, frames[0]...), frames[1]...)
	return &vaultkeys.NewMACKey{
		MACKey: vaultkeys.MACKey{
			ID: b.MACKey, Epoch: b.Epoch, Params: b.Params, Field: b.Field, Tenant: b.Tenant,
			Digest: evaluator.MACKeyDigest(frames), Created: b.Created,
		},
		Secret: secret,
	}
}

func loadMACKey(v Vault, id string, s *gbfv.Scheme) (triple.MACKey, error) {
	in, err := v.OpenMACKey(id)
	if err != nil {
		return triple.MACKey{}, vaulterr.RPC(err, "such MAC key")
	}
	defer in.Close()
	b, err := io.ReadAll(in)
	if err != nil {
		return triple.MACKey{}, err
	}
	defer clear(b)
	return decodeMACKey(b, s)
}

func decodeMACKey(b []byte, s *gbfv.Scheme) (m triple.MACKey, err error) {
	size := s.Field.Size()
	//lodge:check triples/stored-mac-key [drop=(len(b)-size)%2 != 0] [run=Fuzz] [redundant=the
	//  decoder of the polynomials after the share checks their length] a stored MAC key of the
	//  wrong length is loaded
	if len(b) < size || (len(b)-size)%2 != 0 {
		return m, vaulterr.ErrCorrupt
	}
	m.Share = s.Field.NewVec(1)
	//lodge:check triples/stored-share [run=Fuzz] a stored MAC key share that is not canonical is
	//  loaded
	if err := s.Field.DecodeVec(m.Share, b[:size]); err != nil {
		return m, vaulterr.ErrCorrupt
	}
	half := (len(b) - size) / 2
	m.Ciphertext, err = triple.DecodeCiphertext(s, [2][]byte{b[size : size+half], b[size+half:]})
	return m, err
}
