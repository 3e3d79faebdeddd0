package triples

import (
	"context"
	"encoding/hex"
	"errors"
	"io"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/sample"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/keyring"
	"github.com/lodge-mpc/lodge/services/metrics"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/runner"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/vault"
)

// run is one session: a batch, and the MAC key that it needs if there is none.
type run struct {
	*Service
	spec *jobv1.SessionSpec
	// choose has Memory choose the block of matrices.
	choose bool

	claim  *claim
	keys   *keyring.Keys
	scheme *gbfv.Scheme
	plan   *triple.Plan
	macKey *params.Instance
	macID  string // of the MAC key that was used
	held   vault.MACKey
	fresh  bool // whether it was made in this session
	mac    triple.MACKey
	id     round.Digest
	// exposed is set when this party is about to open what a failed MAC check turns into the MAC key.
	exposed bool
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
	if r.scheme, err = r.ring.Scheme(r.spec.GetParams(), r.spec.GetField()); err != nil {
		return 0, err
	}
	kind, dim := Kinds[r.spec.GetKind()], 0
	var shape triple.Shape
	if r.spec.GetKind() == jobv1.Kind_KIND_MATRIX {
		if !r.choose {
			dim = int(r.spec.GetDim())
		}
		shape = triple.Shape{Rows: int(r.spec.GetShape().GetRows()), Inner: int(r.spec.GetShape().GetInner()), Cols: int(r.spec.GetShape().GetColumns())}
	}
	set := r.scheme.Set
	r.plan, err = triple.NewPlan(set, r.spec.GetField(), r.parties, kind, shape, dim, int(min(r.spec.GetCount(), 1<<30)), int(epoch.Dim))
	if err != nil {
		return 0, rpc.Errorf(rpc.Invalid, "`lodge params show` says what fits", "%v", err)
	}
	if r.plan.Owner = round.Party(r.spec.GetInputParty()); int(r.plan.Owner) >= r.parties {
		return 0, rpc.Errorf(rpc.Invalid, "parties count from 0", "input party %d of %d", r.plan.Owner, r.parties)
	}
	if r.macKey, err = triple.MACKeyInstance(set, r.spec.GetField(), r.parties); err != nil {
		return 0, err
	}
	keys, err := r.ring.MemoryBytes(epoch)
	workers := r.ring.Workers()
	return keys + uint64(max(r.plan.MemoryBytes(workers), popk.MemoryBytes(r.macKey, r.parties, true, workers)*3/2)), err
}

// Kinds are the kinds of jobs as the engine calls them.
var Kinds = map[jobv1.Kind]triple.Kind{
	jobv1.Kind_KIND_SCALAR: triple.Scalar, jobv1.Kind_KIND_MATRIX: triple.Matrix, jobv1.Kind_KIND_SQUARE: triple.Square,
	jobv1.Kind_KIND_RANDOM: triple.Random, jobv1.Kind_KIND_BIT: triple.Bit, jobv1.Kind_KIND_INVERSE: triple.Inverse,
	jobv1.Kind_KIND_INPUT: triple.Input,
}

// Claim implements session.Claimant.
func (r *run) Claim() (release func(), err error) {
	if r.claim, err = r.claims.enter(slotOf(r.spec)); err != nil {
		return nil, err
	}
	return r.claim.leave, nil
}

// Run implements session.Protocol.
func (r *run) Run(ctx context.Context, s *session.Session) (*session.Stored, error) {
	var err error
	if r.keys, err = r.ring.Load(r.spec.GetEpoch(), job.PurposeName(r.spec.GetPurpose())); err != nil {
		return nil, err
	}
	defer r.keys.Release()
	if err := r.vault.SpendDecryptions(r.spec.GetEpoch(), uint64(r.plan.Decryptions())); err != nil {
		return nil, keyring.Refused(err, "this batch")
	}
	source, err := session.Source()
	if err != nil {
		return nil, err
	}
	defer source.Wipe()
	defer func() { r.mac.Share.Wipe() }()
	held, err := r.findMACKey()
	if err != nil {
		return nil, err
	}
	result, err := session.Drive(ctx, s, "triples", r.plan.Instance.Hash(), func(rs round.Session) (round.Transition[triple.Result], error) {
		r.id = rs.ID
		return round.Then(triple.AgreeOnMACKey(rs, held), func(_ context.Context, same bool) (round.Transition[triple.Result], error) {
			if same {
				return r.batch(rs, source)
			}
			return r.withFreshKey(rs, source)
		}), nil
	})
	if err != nil {
		r.burn(err)
		return nil, err
	}
	defer result.Wipe()
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	s.Enter(jobv1.JobState_JOB_STATE_STORING)
	return r.store(&result)
}

// findMACKey loads the active MAC key of this epoch, field and tenant, if there is one, and names it.
func (r *run) findMACKey() (round.Digest, error) {
	var err error
	r.held, err = r.vault.FindMACKey(r.spec.GetEpoch(), r.spec.GetField(), r.spec.GetTenant())
	if errors.Is(err, vault.ErrNotFound) {
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

// withFreshKey makes a MAC key first. A key that only some parties hold is given up, unless another session uses it.
func (r *run) withFreshKey(rs round.Session, source *sample.Source) (round.Transition[triple.Result], error) {
	if err := r.claim.make(); err != nil {
		return round.Transition[triple.Result]{}, session.Refuse(rpc.FromError(err))
	}
	if r.macID != "" {
		if _, err := r.vault.BurnMACKey(r.macID, "not all parties hold it"); err != nil {
			return round.Transition[triple.Result]{}, err
		}
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
		r.mac = m
		return r.batch(rs, source)
	}), nil
}

func (r *run) batch(rs round.Session, source *sample.Source) (round.Transition[triple.Result], error) {
	r.mac.Operand = r.operand.of(r.macID, r.scheme, r.mac.Ciphertext)
	return triple.Start(triple.Config{
		Session: rs, Plan: r.plan, Scheme: r.scheme, Keys: r.keys.Public.Keys(r.scheme), Public: r.keys.Public.Public,
		KeyHash: r.keys.PublicHash, Secret: r.keys.Secret, MAC: r.mac, Source: source.Sub("batch"), Workers: r.ring.Workers(),
		Exposed: r.expose,
	})
}

// expose notes, and for a stored MAC key durably, that the key is burnt unless the check has a verdict.
func (r *run) expose() error {
	r.exposed = true
	if r.fresh {
		return nil
	}
	r.claims.expose(r.macID, r.name())
	return r.unlessBurnt(r.vault.ExposeMACKey(r.macID, r.name()))
}

// settle records that the check has passed. Before the result is stored it waits for the sessions that have opened
// their parts of a check of the same key and have no verdict: should one of them have told the key to a cheating peer,
// this check proved nothing, and the key is burnt by then.
func (r *run) settle(ctx context.Context) error {
	if !r.exposed || r.fresh {
		return nil
	}
	err := r.vault.SettleMACKey(r.macID, r.name())
	others := r.claims.settle(r.macID, r.name())
	if err != nil {
		return r.unlessBurnt(err)
	}
	return await(ctx, others)
}

// name is how the session appears in the records of MAC keys.
func (r *run) name() string { return hex.EncodeToString(r.id[:]) }

// unlessBurnt says of an error of the vault that the MAC key was burnt in another session, if it was.
func (r *run) unlessBurnt(err error) error {
	if err == nil || r.fresh {
		return err
	}
	if k, found := r.vault.MACKey(r.macID); found == nil && k.State == vault.MACBurnt {
		return session.Refuse(rpc.Errorf(rpc.Burnt, "submit the job again", "the MAC key was burnt meanwhile: %s", k.Reason))
	}
	return err
}

// burn erases the MAC key and everything under it when the MAC check has failed, or when the session ended without a
// verdict after this party began to open its part of the check: a peer that saw the parts of all others then knows
// the key if it cheated, however it ended the session.
func (r *run) burn(err error) {
	if r.fresh || !r.exposed && !failedHere(err) {
		return // a key that was made in this session is gone with it
	}
	if _, err := r.vault.BurnMACKey(r.macID, "the MAC check failed or ended without a verdict"); err != nil {
		r.Sessions.Log.Error("burning a MAC key", "mac_key", r.macID, "error", err)
		return // whoever waits for a verdict waits on: this key is not to be trusted
	}
	r.claims.settle(r.macID, r.name())
}

// failedHere reports whether this party's own MAC check failed. The word of a peer that its check failed burns nothing.
func failedHere(err error) bool {
	var f *runner.Failure
	return errors.As(err, &f) && f.Outcome == runner.Aborted && (f.Check == maccheck.CheckMAC || f.Check == maccheck.CheckZero)
}

// store writes the batch, and the MAC key if it is new, locked.
func (r *run) store(result *triple.Result) (*session.Stored, error) {
	b := vault.Batch{
		ID: session.Name(r.spec.GetRef()), Epoch: r.spec.GetEpoch(), MACKey: r.macID,
		Params: r.spec.GetParams(), Field: r.spec.GetField(), Kind: job.KindName(r.spec.GetKind()), Dim: uint32(r.plan.Dim),
		Rows: r.spec.GetShape().GetRows(), Inner: r.spec.GetShape().GetInner(), Columns: r.spec.GetShape().GetColumns(),
		InputParty: r.spec.GetInputParty(), Count: uint64(result.Count), TupleBytes: uint64(tupleBytes(r.scheme.Field, r.plan, result)),
		Tenant: r.spec.GetTenant(), Digest: result.Digest, SessionID: r.id, Created: session.Now(),
	}
	w, err := r.vault.NewBatch(b)
	if err != nil {
		return nil, keyring.Refused(err, "this batch")
	}
	if err := writeShares(w, r.scheme.Field, r.plan, result); err != nil {
		w.Abort()
		return nil, err
	}
	var fresh *vault.NewMACKey
	if r.fresh {
		fresh = newMACKey(r, b)
		defer clear(fresh.Secret)
	}
	if err := w.Commit(fresh); err != nil {
		return nil, keyring.Refused(r.unlessBurnt(err), "this batch")
	}
	return Locked(r.vault, b, r.Sessions.Metrics), nil
}

// Locked is a stored batch that waits for activation.
func Locked(v *vault.Vault, b vault.Batch, m *metrics.Metrics) *session.Stored {
	bits := 0
	if set, err := params.Lookup(b.Params); err == nil {
		bits = set.StatSecurityBits()
	}
	return &session.Stored{
		Digest: b.Digest, Epoch: b.Epoch, BatchID: b.ID, Count: b.Count, Security: keygen.Security, StatBits: bits,
		Activate:   func() error { return keyring.Refused(v.ActivateBatch(b.ID), "batch "+b.ID) },
		Discard:    func(reason string) error { return v.RevokeBatch(b.ID, reason) },
		OnActivate: func() { m.Stored(b.Kind, b.Field, b.Count) },
	}
}

// clears is the number of values in clear beside this party's shares of a tuple.
func clears(r *triple.Result) int { return min(1, len(r.Clear.W)) }

// tupleBytes is the length of what this party has of a tuple.
func tupleBytes(f *field.Field, p *triple.Plan, r *triple.Result) int {
	a, b, c := p.Elements()
	return (2*(a+b+c) + clears(r)) * f.Size()
}

// shareBuffer is about how many bytes of shares are encoded at a time.
const shareBuffer = 64 << 10

// writeShares writes tuple by tuple: a, b, c and their MACs, matrices row-major, and at the owner of input masks their values
// in clear. Elements are encoded many at a time.
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

func newMACKey(r *run, b vault.Batch) *vault.NewMACKey {
	frames := triple.EncodeCiphertext(r.scheme, r.mac.Ciphertext)
	secret := make([]byte, r.scheme.Field.Size(), r.scheme.Field.Size()+len(frames[0])+len(frames[1]))
	r.scheme.Field.Encode(secret, r.mac.Share.At(0))
	secret = append(append(secret, frames[0]...), frames[1]...)
	return &vault.NewMACKey{
		MACKey: vault.MACKey{
			ID: b.MACKey, Epoch: b.Epoch, Params: b.Params, Field: b.Field, Tenant: b.Tenant,
			Digest: round.Hash("lodge mac key ciphertext", frames[0], frames[1]), Created: b.Created,
		},
		Secret: secret,
	}
}

func loadMACKey(v *vault.Vault, id string, s *gbfv.Scheme) (triple.MACKey, error) {
	in, err := v.OpenMACKey(id)
	if err != nil {
		return triple.MACKey{}, keyring.Refused(err, "such MAC key")
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
	if len(b) < size || (len(b)-size)%2 != 0 {
		return m, vault.ErrCorrupt
	}
	m.Share = s.Field.NewVec(1)
	if err := s.Field.DecodeVec(m.Share, b[:size]); err != nil {
		return m, vault.ErrCorrupt
	}
	half := (len(b) - size) / 2
	m.Ciphertext, err = triple.DecodeCiphertext(s, [2][]byte{b[size : size+half], b[size+half:]})
	return m, err
}
