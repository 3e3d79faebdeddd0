package threshold

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/keyset"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/secret"
	"github.com/lodge-mpc/lodge/engine/share"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/offline/keygen"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Security is the security level in the records of threshold keys.
const Security = "passive"

// keysRun is a session that generates keys.
type keysRun struct {
	*Service
	spec   *jobv1.SessionSpec
	scheme scheme
}

// group returns the parties that receive the shares.
func (s *Service) group(spec *jobv1.SessionSpec) []uint32 {
	if group := spec.GetGroup(); len(group) > 0 {
		return group
	}
	var all []uint32
	for i := range s.Sessions.Names {
		all = append(all, uint32(i))
	}
	return all
}

// members returns the signing keys of the parties of a group.
func (s *Service) members(group []uint32) (keys [][]byte) {
	for _, p := range group {
		keys = append(keys, s.Sessions.Keys[p])
	}
	return keys
}

// newEpoch returns an error if the epoch exists or if its threshold leaves no honest majority.
func (s *Service) newEpoch(spec *jobv1.SessionSpec, scheme scheme) error {
	if _, err := s.Vault.Epoch(spec.GetEpoch()); err == nil {
		return rpc.Errorf(rpc.Conflict, "an epoch is made only once; use the next number", "epoch %d exists already", spec.GetEpoch())
	}
	group := s.group(spec)
	if scheme.own() {
		//lodge:check multikey/group/threshold [run=TestMultikeyRefusals] one member of a group
		//  decrypts alone
		if spec.GetThreshold() != 1 {
			return rpc.Errorf(rpc.Invalid, "use threshold 1: two or more of a group decrypt", "a threshold of %d; a group has no shared secret", spec.GetThreshold())
		}
		return nil
	}
	//lodge:check threshold/majority [run=TestRefusals] [redundant=the protocol makes the same
	//  check] keys are made without an honest majority
	if n, t := len(group), int64(spec.GetThreshold()); t < 1 || int64(n) < 2*t+1 || n > share.MaxParties {
		return rpc.Errorf(rpc.Invalid, "use more than twice as many holders as the threshold", "a threshold of %d among %d holders leaves no honest majority", t, n)
	}
	return nil
}

// Memory implements session.Protocol.
func (r *keysRun) Memory() (uint64, error) {
	var err error
	if r.scheme, err = r.schemeOf(r.spec.GetParams()); err != nil {
		return 0, err
	}
	if err := r.newEpoch(r.spec, r.scheme); err != nil {
		return 0, err
	}
	return r.scheme.keysMemory(r.spec, len(r.group(r.spec)))
}

// Run implements session.Protocol.
func (r *keysRun) Run(ctx context.Context, s *session.Entry) (*session.Stored, error) {
	var id round.Digest
	result, err := session.Drive(ctx, s, plan.Threshold, terms("keys", r.scheme, [32]byte{}),
		func(rs round.Session, source *sample.Source) (round.Transition[*made], error) {
			id = rs.ID
			return r.scheme.startKeys(keysConfig{rs, r.spec, source, r.Workers, r.members(r.group(r.spec))})
		})
	if err != nil {
		return nil, err
	}
	defer result.Wipe()
	s.Enter(jobv1.JobState_JOB_STATE_STORING)
	return r.store(r.spec, r.scheme, id, result.share, result.public)
}

// store stores new shares and their public keys, locked.
func (s *Service) store(spec *jobv1.SessionSpec, scheme scheme, id round.Digest, parts []secret.Box[share.Vec], keys *publicKeys) (*session.Stored, error) {
	group := s.group(spec)
	e := vaultkeys.Epoch{
		ID: spec.GetEpoch(), Params: spec.GetParams(), ParamsHash: scheme.hash(), RosterHash: s.Sessions.Roster, Purpose: purpose,
		Threshold: spec.GetThreshold(), Members: s.members(group), Digest: keys.digest, SessionID: id,
		Session: session.Name(spec.GetRef()), KeygenSecurity: Security, Created: session.Now(), AnyQuorum: scheme.own(),
		Galois: keys.galois, Limit: scheme.floods(len(group), spec.GetThreshold()), From: spec.GetFromEpoch(),
	}
	w, err := s.Vault.NewEpoch(e)
	if err != nil {
		return nil, vaulterr.RPC(err, "this epoch")
	}
	defer w.Abort()
	for _, part := range parts {
		if err := writeWords(w.Secret, part.Open()); err != nil {
			return nil, err
		}
	}
	if err := keys.Write(w.Public, keys.append); err != nil {
		return nil, err
	}
	if err := w.Commit(); err != nil {
		return nil, vaulterr.RPC(err, "this epoch")
	}
	return keygen.Locked(s.Vault, e), nil
}

// The secret object of an epoch contains the parts of the share, as words. The public object
// contains the header of the keys, the digests of their chunks, and the chunks, whose sizes are
// known.

func writeWords(w io.Writer, words []uint64) error {
	b := make([]byte, 0, 8*len(words))
	for _, x := range words {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	defer clear(b)
	_, err := w.Write(b)
	return err
}

// readShares reads the first parts of this party's share of an epoch. The caller must wipe them.
func (s *Service) readShares(id uint64, parts []part) (list []share.Vec, err error) {
	in, err := s.Vault.OpenEpochSecret(id)
	if err != nil {
		return nil, vaulterr.RPC(err, fmt.Sprintf("epoch %d", id))
	}
	defer in.Close()
	for _, p := range parts {
		v := make(share.Vec, p.n)
		list = append(list, v)
		if err = readWords(in, v, p.q); err != nil {
			wipe(list)
			return nil, fmt.Errorf("threshold: shares of epoch %d: %w", id, err)
		}
	}
	return list, nil
}

func wipe(list []share.Vec) {
	for _, v := range list {
		v.Wipe()
	}
}

func readWords(in io.Reader, words []uint64, q uint64) error {
	b := make([]byte, 8*len(words))
	defer clear(b)
	if _, err := io.ReadFull(in, b); err != nil {
		return err
	}
	for i := range words {
		if words[i] = binary.LittleEndian.Uint64(b[8*i:]); words[i] >= q {
			return vaulterr.ErrCorrupt
		}
	}
	return nil
}

// chunks calls begin with the head and then f with the chunks from first on. Each slice is valid
// until the next call.
func (s *Service) chunks(e *vaultkeys.Epoch, l layout, first, count int, begin func(keyset.Head) error, f func(i int, chunk []byte) error) error {
	in, err := s.Vault.OpenEpochPublic(e.ID)
	if err != nil {
		return vaulterr.RPC(err, fmt.Sprintf("epoch %d", e.ID))
	}
	defer in.Close()
	buffered := bufio.NewReaderSize(in, 1<<20)
	head, err := keyset.ReadHead(buffered, l.header, l.chunks)
	if err != nil {
		return err
	}
	if err := begin(head); err != nil {
		return err
	}
	for i := range min(first+count, l.chunks) {
		size := l.chunk(i)
		if i < first {
			if _, err := io.CopyN(io.Discard, buffered, int64(size)); err != nil {
				return err
			}
			continue
		}
		chunk := make([]byte, size) // a stream may still use it after Send
		if _, err := io.ReadFull(buffered, chunk); err != nil {
			return err
		}
		if err := f(i, chunk); err != nil {
			return err
		}
	}
	return nil
}

// ListKeys implements the service.
func (s *Service) ListKeys(context.Context, *thresholdv1.ListKeysRequest) (*thresholdv1.ListKeysResponse, error) {
	all, err := s.Vault.Epochs()
	if err != nil {
		return nil, err
	}
	out := &thresholdv1.ListKeysResponse{}
	for _, e := range all {
		if e.Purpose != purpose {
			continue
		}
		k, err := s.describe(&e)
		if err != nil {
			return nil, err
		}
		out.Keys = append(out.Keys, k)
	}
	return out, nil
}

func (s *Service) describe(e *vaultkeys.Epoch) (*thresholdv1.ThresholdKey, error) {
	k := &thresholdv1.ThresholdKey{
		Epoch: e.ID, State: string(e.State), Params: e.Params, ParamsHash: e.ParamsHash[:], Digest: e.Digest[:], Threshold: e.Threshold,
		Created: timestamppb.New(e.Created), KeygenSecurity: e.KeygenSecurity, Galois: e.Galois, Flooded: e.Decrypted, AnyQuorum: e.AnyQuorum,
	}
	var err error
	if k.FloodingLimit, err = s.Vault.FloodingLimit(e.ID); err != nil {
		return nil, err
	}
	places := s.Vault.Places(e)
	for number, p := range places {
		k.Holders = append(k.Holders, int32(p))
		if p == int(s.Sessions.Self) {
			k.Number = uint32(number)
		}
	}
	scheme, err := s.schemeOf(e.Params)
	if err != nil || e.State == vaultkeys.EpochRetired {
		return k, nil //nolint:nilerr // a set that this build no longer has
	}
	l := scheme.layout(len(e.Galois))
	k.Chunks, k.KeyBytes = uint32(l.chunks), l.size()
	if k.Decrypted, err = s.Vault.ThresholdCount(e.ID); err != nil {
		return nil, err
	}
	k.Masks, err = s.inStock(e, scheme, places)
	return k, err
}

// inStock returns the number of masks of an epoch by quorum and form.
func (s *Service) inStock(e *vaultkeys.Epoch, scheme scheme, places []int) (list []*thresholdv1.MaskStock, err error) {
	batches, err := s.Vault.MasksUnder(e.ID)
	if err != nil {
		return nil, err
	}
	counts := map[string]*thresholdv1.MaskStock{}
	for _, b := range batches {
		quorum := present(b.Quorum, places)
		if quorum == nil {
			continue // of a holder that has left
		}
		name := fmt.Sprint(b.Form, quorum)
		if counts[name] == nil {
			counts[name] = &thresholdv1.MaskStock{Form: job.MaskForms[b.Form], Quorum: quorum}
			list = append(list, counts[name])
		}
		counts[name].Free += b.Free().Count()
	}
	for _, m := range list {
		p, err := scheme.params(len(m.GetQuorum()), m.GetForm())
		if err != nil {
			return nil, err
		}
		m.NoiseBound = decrypt.MaxNoise(p.Kind, p.Modulus, p.Parties) / float64(p.Modulus)
		if m.GetForm() == jobv1.MaskForm_MASK_FORM_PAPER {
			n, t := makers(e)
			m.FailureProbability = scheme.failure(p, n, t)
		}
	}
	return list, nil
}

// makers returns how many parties made the keys of an epoch and how many of them may collude. The
// errors of the keys depend on these numbers. Epochs with new shares do not record them; for these,
// makers returns the numbers with the largest errors.
func makers(e *vaultkeys.Epoch) (parties, threshold int) {
	if e.From != 0 {
		return config.MaxParties, config.MaxParties / 2
	}
	return len(e.Members), int(e.Threshold)
}

// present converts numbers of holders to their indices in the roster, ascending. It returns nil if
// a holder is not in the roster.
func present(numbers []uint32, places []int) (quorum []uint32) {
	for _, n := range numbers {
		if places[n] < 0 {
			return nil
		}
		quorum = append(quorum, uint32(places[n]))
	}
	slices.Sort(quorum)
	return quorum
}

// GetKeys implements the service.
func (s *Service) GetKeys(r *thresholdv1.GetKeysRequest, stream thresholdv1.ThresholdService_GetKeysServer) error {
	e, err := s.held(r.GetEpoch(), false)
	if err != nil {
		return err
	}
	scheme, err := s.schemeOf(e.Params)
	if err != nil {
		return err
	}
	l := scheme.layout(len(e.Galois))
	n := uint32(l.chunks)
	count := r.GetCount()
	if count == 0 {
		count = n
	}
	if r.GetFirst() >= n {
		return rpc.Errorf(rpc.Invalid, "", "chunk %d of %d", r.GetFirst(), n)
	}
	count = min(count, n-r.GetFirst())
	return s.chunks(&e, l, int(r.GetFirst()), int(count), func(h keyset.Head) error {
		return stream.Send(&thresholdv1.GetKeysResponse{Header: h.Header, Digest: e.Digest[:], ChunkDigests: h.Slices()})
	}, func(i int, chunk []byte) error {
		return stream.Send(&thresholdv1.GetKeysResponse{Index: uint32(i), Chunk: chunk})
	})
}
