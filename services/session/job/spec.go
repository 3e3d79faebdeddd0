// Package job holds the job logic that parties and the coordinator share: the validation of a
// session's spec, its digest, and the gate by which a party enforces its own policy against any
// request of the coordinator.
package job

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/proto/wire"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// ProtocolVersion is the version of all messages between parties. Parties of different versions
// reject each other's sessions. It changes when a message changes; TestWhatPartiesSayIsPinned pins
// hashes of the messages.
const ProtocolVersion = 13

// Ref names a session within this process: job id and ordinal.
type Ref struct {
	JobID   string
	Ordinal uint32
}

func (r Ref) String() string { return fmt.Sprintf("%s.%d", r.JobID, r.Ordinal) }

// Proto returns the reference's wire form.
func (r Ref) Proto() *jobv1.SessionRef {
	return &jobv1.SessionRef{JobId: r.JobID, Ordinal: r.Ordinal}
}

// RefOf reads a reference from the wire.
func RefOf(r *jobv1.SessionRef) (Ref, error) {
	if !config.ValidName(r.GetJobId()) || r.GetOrdinal() == 0 {
		return Ref{}, rpc.Errorf(rpc.Invalid, "name a job (a-z, 0-9, '-') and an ordinal from 1",
			"%q.%d is not a session", r.GetJobId(), r.GetOrdinal())
	}
	return Ref{r.GetJobId(), r.GetOrdinal()}, nil
}

// MakesTuples reports whether jobs of a kind make tuples, under a MAC key.
func MakesTuples(k jobv1.Kind) bool { return wire.Kind(k).Known() }

// Stocked reports whether the results of jobs of a kind are kept in stock: tuples and masks.
func Stocked(k jobv1.Kind) bool { return MakesTuples(k) || k == jobv1.Kind_KIND_MASKS }

// Multiplies reports whether tuples of a kind contain products of secret values, which a sacrifice
// checks.
func Multiplies(k jobv1.Kind) bool { return wire.Kind(k).Multiplies() }

// Shaped reports whether tuples of a kind have a shape, and are made in blocks.
func Shaped(k jobv1.Kind) bool { return wire.Kind(k).Shaped() }

// Owned reports whether one party knows the values of tuples of a kind.
func Owned(k jobv1.Kind) bool { return wire.Kind(k).Owned() }

// made reports whether the protocol makes results of the kind.
func made(p jobv1.Protocol, k jobv1.Kind) bool {
	switch p {
	case jobv1.Protocol_PROTOCOL_KEYGEN:
		return k == jobv1.Kind_KIND_KEYS
	case jobv1.Protocol_PROTOCOL_POPK:
		return k == jobv1.Kind_KIND_PROOF
	case jobv1.Protocol_PROTOCOL_TRIPLES:
		return MakesTuples(k)
	case jobv1.Protocol_PROTOCOL_THRESHOLD:
		return k == jobv1.Kind_KIND_KEYS || k == jobv1.Kind_KIND_MASKS || k == jobv1.Kind_KIND_RESHARE
	}
	return false
}

// maxName bounds the names of sets and fields, which are recorded.
const maxName = 64

// Validate returns an error unless a spec is well formed. It does not check policy.
func Validate(s *jobv1.SessionSpec, now time.Time) error {
	if _, err := RefOf(s.GetRef()); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return rpc.Errorf(rpc.Invalid, "", "spec: "+format, args...)
	}
	switch {
	//lodge:check job/spec/protocol [run=TestCheck] a kind of job runs with a protocol that does not
	//  make it
	case !made(s.GetProtocol(), s.GetKind()):
		return bad("kind %s does not go with protocol %s", s.GetKind(), s.GetProtocol())
	//lodge:check job/spec/params [run=TestCheck] a spec lacks the name or the hash of its
	//  parameters
	case s.GetParams() == "" || len(s.GetParams()) > maxName || len(s.GetParamsHash()) != 32:
		return bad("params need a name of at most %d bytes and a hash of 32", maxName)
	//lodge:check job/spec/roster [run=TestCheck] a spec lacks the hash of its roster
	case len(s.GetRosterHash()) != 32:
		return bad("the roster hash has 32 bytes")
	//lodge:check job/spec/epoch [run=TestCheck] a spec lacks its epoch
	case s.GetEpoch() == 0:
		return bad("epochs count from 1")
	//lodge:check job/spec/purpose [run=TestCheck] keys have no purpose
	case PurposeName(s.GetPurpose()) == "":
		return bad("no purpose")
	//lodge:check job/spec/deadline [run=TestCheck] a session has no deadline
	case s.GetDeadline() == nil || s.GetDeadline().CheckValid() != nil:
		return bad("no deadline")
	//lodge:check job/spec/late [run=TestCheck] a session starts after its deadline
	case !s.GetDeadline().AsTime().After(now):
		return rpc.Errorf(rpc.TimedOut, "start a new session", "the session's deadline is over")
	//lodge:check job/spec/input-party [run=TestCheck] a kind other than input masks names an input
	//  party
	case s.GetInputParty() != 0 && !Owned(s.GetKind()):
		return bad("only input masks are of one party")
	//lodge:check job/spec/sacrifice [run=TestCheck] a kind without products runs without a
	//  sacrifice
	case s.GetNoSacrifice() && !Multiplies(s.GetKind()):
		return bad("%s have no products to sacrifice", s.GetKind())
	//lodge:check job/spec/parties [run=TestCheck] input masks are for a party that does not exist
	case s.GetInputParty() >= config.MaxParties:
		return bad("input party %d; there are at most %d parties", s.GetInputParty(), config.MaxParties)
	}
	if err := validateThreshold(s); err != nil {
		return err
	}
	if s.GetPurpose() == jobv1.Purpose_PURPOSE_THRESHOLD {
		return nil
	}
	if s.GetKind() == jobv1.Kind_KIND_KEYS {
		//lodge:check job/spec/keys [run=TestCheck] a key generation names a field, a tenant or a
		//  count
		if s.GetField() != "" || s.GetCount() != 0 || s.GetShape() != nil || s.GetTenant() != "" {
			return bad("keys have no field, count, shape or tenant")
		}
		//lodge:check job/spec/keys-dim [run=TestCheck] rotation keys have a dimension without
		//  rotations
		if d := s.GetDim(); d&(d-1) != 0 {
			return bad("rotation keys are for blocks of a power of two, not %d", d)
		}
		return nil
	}
	switch {
	case !slices.Contains(config.Fields, s.GetField()):
		return rpc.Errorf(rpc.Invalid, "write one of "+strings.Join(config.Fields, ", "), "field %.20q", s.GetField())
	//lodge:check job/spec/count [run=TestCheck] a job makes nothing
	case s.GetCount() == 0:
		return rpc.Errorf(rpc.Invalid, "say how many to make at least", "a count of 0")
	//lodge:check job/spec/dim [run=TestCheck] matrices have no block dimension
	case s.GetDim() == 0:
		return bad("no block dimension")
	//lodge:check job/spec/tenant [run=TestCheck] tuples have no valid tenant
	case !config.ValidName(s.GetTenant()):
		return bad("tenant %q is not a name", s.GetTenant())
	//lodge:check job/spec/triples-purpose [run=TestCheck] tuples are made under decryption keys,
	//  whose service is a decryption oracle for them
	case s.GetProtocol() == jobv1.Protocol_PROTOCOL_TRIPLES && s.GetPurpose() != jobv1.Purpose_PURPOSE_TRIPLES:
		return rpc.Errorf(rpc.KeyPurpose, "use an epoch made for triples", "triples are not made under a key for decryption")
	}
	shape := s.GetShape()
	switch {
	//lodge:check job/spec/shape [run=TestCheck] a kind other than matrices has a shape
	case !Shaped(s.GetKind()) && (shape != nil || s.GetDim() != 1):
		return bad("only matrices and convolutions have a shape or a dim above 1")
	case s.GetDim()&(s.GetDim()-1) != 0:
		return bad("blocks of matrices and convolutions are a power of two, not %d", s.GetDim())
	case Shaped(s.GetKind()):
		//lodge:check job/convolution [run=TestCheckOfConvolutions] a job asks for a convolution
		//  with an invalid shape
		if err := wire.Kind(s.GetKind()).CheckShape(wire.Shape(shape)); err != nil {
			return bad("%v", err)
		}
	}
	return nil
}

// Digest returns the SHA-256 of all fields of the spec, each preceded by its length. Parties
// compare it before anything else.
func Digest(s *jobv1.SessionSpec) [32]byte {
	h := sha256.New()
	put := func(b []byte) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	num := func(v uint64) { put(binary.LittleEndian.AppendUint64(nil, v)) }
	put([]byte("lodge session spec v1"))
	//lodge:check job/digest/job [run=TestDigestBinds] the spec digest does not bind the job
	put([]byte(s.GetRef().GetJobId()))
	//lodge:check job/digest/ordinal [run=TestDigestBinds] the spec digest does not bind the ordinal
	num(uint64(s.GetRef().GetOrdinal()))
	//lodge:check job/digest/protocol [run=TestDigestBinds] the spec digest does not bind the
	//  protocol
	num(uint64(s.GetProtocol()))
	//lodge:check job/digest/version [run=TestDigestBinds] the spec digest does not bind the
	//  protocol version
	num(uint64(s.GetProtocolVersion()))
	//lodge:check job/digest/params [run=TestDigestBinds] the spec digest does not bind the name of
	//  the parameters
	put([]byte(s.GetParams()))
	//lodge:check job/digest/params-hash [run=TestDigestBinds] the spec digest does not bind the
	//  hash of the parameters
	put(s.GetParamsHash())
	//lodge:check job/digest/roster [run=TestDigestBinds] the spec digest does not bind the roster
	put(s.GetRosterHash())
	//lodge:check job/digest/field [run=TestDigestBinds] the spec digest does not bind the field
	put([]byte(s.GetField()))
	//lodge:check job/digest/kind [run=TestDigestBinds] the spec digest does not bind the kind
	num(uint64(s.GetKind()))
	//lodge:check job/digest/dim [run=TestDigestBinds] the spec digest does not bind the block
	//  dimension
	num(uint64(s.GetDim()))
	//lodge:check job/digest/rows [run=TestDigestBinds] the spec digest does not bind the rows
	num(uint64(s.GetShape().GetRows()))
	//lodge:check job/digest/inner [run=TestDigestBinds] the spec digest does not bind the inner
	//  dimension
	num(uint64(s.GetShape().GetInner()))
	//lodge:check job/digest/columns [run=TestDigestBinds] the spec digest does not bind the columns
	num(uint64(s.GetShape().GetColumns()))
	//lodge:check job/digest/count [run=TestDigestBinds] the spec digest does not bind the count
	num(s.GetCount())
	//lodge:check job/digest/epoch [run=TestDigestBinds] the spec digest does not bind the epoch
	num(s.GetEpoch())
	//lodge:check job/digest/purpose [run=TestDigestBinds] the spec digest does not bind the purpose
	num(uint64(s.GetPurpose()))
	//lodge:check job/digest/tenant [run=TestDigestBinds] the spec digest does not bind the tenant
	put([]byte(s.GetTenant()))
	//lodge:check job/digest/seconds [run=TestDigestBinds] the spec digest does not bind the seconds
	//  of the deadline
	num(uint64(s.GetDeadline().GetSeconds()))
	//lodge:check job/digest/nanos [run=TestDigestBinds] the spec digest does not bind the
	//  nanoseconds of the deadline
	num(uint64(s.GetDeadline().GetNanos()) & math.MaxUint32)
	//lodge:check job/digest/input-party [run=TestDigestBinds] the spec digest does not bind the
	//  input party
	num(uint64(s.GetInputParty()))
	sacrifice := uint64(1)
	if s.GetNoSacrifice() {
		sacrifice = 0
	}
	//lodge:check job/digest/sacrifice [run=TestDigestBinds] the spec digest does not bind whether
	//  products are sacrificed
	num(sacrifice)
	num(uint64(s.GetThreshold()))
	num(uint64(s.GetForm()))
	num(s.GetFromEpoch())
	put(s.GetFromDigest())
	num(uint64(s.GetFromThreshold()))
	for _, list := range [][]uint32{s.GetGroup(), s.GetFromHolders(), s.GetGalois()} {
		num(uint64(len(list)))
		for _, p := range list {
			num(uint64(p))
		}
	}
	//lodge:check job/digest-convolution [run=TestDigestBindsConvolutions] the spec digest does not
	//  bind the shape of the convolution
	if c := s.GetShape().GetConvolution(); c != nil {
		put([]byte("convolution"))
		for _, n := range []uint32{
			c.GetChannels(), c.GetHeight(), c.GetWidth(), c.GetOutputs(), c.GetKernelHeight(), c.GetKernelWidth(),
			c.GetStrideHeight(), c.GetStrideWidth(), c.GetPaddingHeight(), c.GetPaddingWidth(),
		} {
			num(uint64(n))
		}
	}
	return [32]byte(h.Sum(nil))
}

// Final reports whether a state is the end of a session or job.
func Final(s jobv1.JobState) bool {
	switch s {
	case jobv1.JobState_JOB_STATE_COMPLETED, jobv1.JobState_JOB_STATE_FAILED,
		jobv1.JobState_JOB_STATE_CANCELLED, jobv1.JobState_JOB_STATE_TIMED_OUT:
		return true
	}
	return false
}

// MayFollow reports whether a job or session in state a may move to b: forwards through the states,
// and before ACTIVATING to any final state without a result.
func MayFollow(a, b jobv1.JobState) bool {
	const activating = jobv1.JobState_JOB_STATE_ACTIVATING
	switch {
	case Final(a):
		return false
	case b <= jobv1.JobState_JOB_STATE_COMPLETED:
		return b > a && (b != jobv1.JobState_JOB_STATE_COMPLETED || a == activating)
	}
	return a < activating
}
