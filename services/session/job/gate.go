package job

import (
	"bytes"
	"slices"
	"sync"
	"time"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/proto/wire"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Terms are a party's pins and permissions.
type Terms struct {
	Policy              config.Policy
	RosterHash          [32]byte
	AllowPassiveKeygen  bool
	AllowInsecureParams bool
	// AllowPassiveThreshold allows generating and using passively secure keys, which all threshold
	// keys are: they protect against parties that follow the protocol.
	AllowPassiveThreshold bool
	// Proved reports whether keys of a parameter set are proved, so that their generation is more
	// than passively secure.
	Proved func(params string) bool
	// Insecure reports whether a parameter set is for tests only.
	Insecure func(params string) bool
	// NewKeys returns an error if the party refuses to make new keys of a parameter set; resharing
	// makes no new keys. A nil NewKeys refuses no set.
	NewKeys func(params string) error
	Now     func() time.Time // nil: time.Now
}

// Gate enforces a party's terms. It is safe for concurrent use.
type Gate struct {
	terms Terms

	mu          sync.Mutex
	sessions    int
	memory      uint64         // of sessions, estimated bytes
	callMemory  uint64         // of clients' computations, estimated bytes
	calls       map[string]int // of each client that has some
	starts      []time.Time    // within the last hour
	decryptions []time.Time
}

// NewGate makes a gate that has admitted nothing.
func NewGate(t Terms) *Gate {
	if t.Now == nil {
		t.Now = time.Now
	}
	return &Gate{terms: t, calls: map[string]int{}}
}

var purposeNames = map[jobv1.Purpose]string{
	jobv1.Purpose_PURPOSE_TRIPLES:    "triples",
	jobv1.Purpose_PURPOSE_DECRYPTION: "decryption",
	jobv1.Purpose_PURPOSE_THRESHOLD:  "threshold",
}

// KindName returns the name of a kind in configurations, flags and JSON.
func KindName(k jobv1.Kind) string { return wire.Name(k) }

// NoTuples returns the reason why a kind produces no tuples, or "".
func NoTuples(k jobv1.Kind) string {
	if name := KindName(k); name != "" {
		return "jobs of kind " + name + " make no tuples"
	}
	return "no kind"
}

// KindOf returns the kind with the given name, or the unspecified kind.
func KindOf(name string) jobv1.Kind { return wire.Of(name) }

// PurposeName returns the name of a purpose in configurations, flags and JSON.
func PurposeName(p jobv1.Purpose) string { return purposeNames[p] }

// Check compares a spec with pins and policy, without admitting it.
func (g *Gate) Check(s *jobv1.SessionSpec) error {
	//lodge:check job/gate/valid [run=TestCheck] a malformed spec is checked as if it were valid
	if err := Validate(s, g.terms.Now()); err != nil {
		return err
	}
	if err := g.pins(s); err != nil {
		return err
	}
	//lodge:check gate/new-keys run=TestCheck a party makes keys of a set that refuses new ones
	if err := g.newKeys(s); err != nil {
		return err
	}
	p := &g.terms.Policy
	refuse := func(what string, args ...any) error {
		return rpc.Errorf(rpc.PolicyRefused, "the party's operator can change its policy", what, args...)
	}
	kind, purpose := KindName(s.GetKind()), purposeNames[s.GetPurpose()]
	switch {
	//lodge:check job/gate/kinds [run=TestCheck|TestAdmit] the party makes a kind that its policy
	//  does not list
	case !slices.Contains(p.Kinds, kind):
		return refuse("kind %s is not among %q", kind, p.Kinds)
	//lodge:check job/gate/purposes [run=TestCheck|TestAdmit] the party makes keys for a purpose
	//  that its policy does not list
	case !slices.Contains(p.Purposes, purpose):
		return refuse("purpose %s is not among %q", purpose, p.Purposes)
	//lodge:check job/gate/count [run=TestCheck|TestAdmit] a job makes more tuples than the policy
	//  allows
	case s.GetCount() > p.MaxCount:
		return refuse("count %d is above %d", s.GetCount(), p.MaxCount)
	case s.GetKind() == jobv1.Kind_KIND_KEYS || s.GetPurpose() == jobv1.Purpose_PURPOSE_THRESHOLD:
		return nil
	//lodge:check job/gate/sacrifice [run=TestCheck|TestAdmit] tuples are made without a sacrifice
	//  and without the operator's permission
	case s.GetNoSacrifice() && !p.AllowNoSacrifice:
		return refuse("products without a sacrifice are not allowed here (allow_no_sacrifice)")
	//lodge:check job/gate/fields [run=TestCheck|TestAdmit] the party works in a field that its
	//  policy does not list
	case !slices.Contains(p.Fields, s.GetField()):
		return refuse("field %q is not among %q", s.GetField(), p.Fields)
	//lodge:check job/gate/tenants [run=TestCheck|TestAdmit] the party works for a tenant that its
	//  policy does not list
	case !slices.Contains(p.Tenants, s.GetTenant()):
		return refuse("tenant %q is not one of this party's", s.GetTenant())
	case Shaped(s.GetKind()):
		product, err := wire.Kind(s.GetKind()).Product(wire.Shape(s.GetShape()))
		if err != nil {
			return err // Validate has checked the shape
		}
		//lodge:check job/gate/dim [swap=int(p.MaxDim)=>1 << 30] [run=TestCheck] matrices are larger than
		//  the policy allows
		if largest := max(product.Largest(), int(s.GetDim())); largest > int(p.MaxDim) {
			return refuse("a product of %d x %d and %d x %d matrices in blocks of %d is above the largest dimension %d",
				product.Rows, product.Inner, product.Inner, product.Cols, s.GetDim(), p.MaxDim)
		}
	}
	return nil
}

func (g *Gate) pins(s *jobv1.SessionSpec) error {
	hash, pinned := config.Pin(g.terms.Policy.Params, s.GetParams())
	switch {
	//lodge:check job/gate/version [run=TestCheck|TestAdmit] parties with different protocol
	//  versions start a session
	case s.GetProtocolVersion() != ProtocolVersion:
		return rpc.Errorf(rpc.PinMismatch, "run the same release everywhere",
			"protocol version %d asked, %d spoken here", s.GetProtocolVersion(), ProtocolVersion)
	//lodge:check job/gate/roster [run=TestCheck|TestAdmit] a session runs with a roster that is not
	//  pinned
	case !bytes.Equal(s.GetRosterHash(), g.terms.RosterHash[:]):
		return rpc.Errorf(rpc.PinMismatch, "compare the roster files", "the roster differs from the one pinned here")
	//lodge:check job/gate/params [run=TestCheck|TestAdmit] a session uses a parameter set that is
	//  not pinned
	case !pinned:
		return rpc.Errorf(rpc.PolicyRefused, "pin the set in the party's policy", "parameter set %q is not pinned here", s.GetParams())
	//lodge:check job/gate/params-hash [swap=!bytes.Equal(s.GetParamsHash(), hash[:])=>hash != hash]
	//  [run=TestCheck|TestAdmit] a parameter set differs from the pinned one
	case !bytes.Equal(s.GetParamsHash(), hash[:]):
		return rpc.Errorf(rpc.PinMismatch, "compare the output of `lodge params show` at every party",
			"parameter set %s has another hash than the one pinned here", s.GetParams())
	//lodge:check job/gate/insecure [run=TestCheck|TestAdmit] insecure parameters are used without
	//  the operator's permission
	case g.terms.Insecure != nil && g.terms.Insecure(s.GetParams()) && !g.terms.AllowInsecureParams:
		return rpc.Errorf(rpc.PolicyRefused, "allow_insecure_params is for tests", "parameter set %s is insecure", s.GetParams())
	case s.GetPurpose() == jobv1.Purpose_PURPOSE_THRESHOLD && !g.terms.AllowPassiveThreshold:
		return PassiveThreshold()
	case s.GetPurpose() == jobv1.Purpose_PURPOSE_THRESHOLD:
		return nil
	//lodge:check job/gate/passive-keygen [run=TestCheck|TestAdmit] unproved keys are made without
	//  the operator's permission
	case s.GetKind() == jobv1.Kind_KIND_KEYS && !g.terms.AllowPassiveKeygen && (g.terms.Proved == nil || !g.terms.Proved(s.GetParams())):
		return rpc.Errorf(rpc.PassiveKeygen, "take a set whose keys are proved, `lodge params list`; allow_passive_keygen: true accepts this, for development",
			"key generation under %s is only passively secure, and this party does not allow that", s.GetParams())
	}
	return nil
}

// newKeys refuses keys of a legacy set.
func (g *Gate) newKeys(s *jobv1.SessionSpec) error {
	if s.GetKind() != jobv1.Kind_KIND_KEYS || g.terms.NewKeys == nil {
		return nil
	}
	return g.terms.NewKeys(s.GetParams())
}

// PassiveThreshold returns the error of a party that does not allow threshold keys.
func PassiveThreshold() *rpc.Error {
	return rpc.Errorf(rpc.PassiveKeygen, "set allow_passive_threshold: true to accept this; docs/guides/threshold.md explains it",
		"threshold keys are only passively secure, and this party does not allow them")
}

// Admit checks a spec and counts its session as running; memory is the estimated peak in bytes. The
// caller must call release once when the session ends.
func (g *Gate) Admit(s *jobv1.SessionSpec, memory uint64) (release func(), err error) {
	//lodge:check job/gate/checked [run=TestWhatIsRefused] a session is admitted without a check
	if err := g.Check(s); err != nil {
		return nil, err
	}
	p := &g.terms.Policy
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.room(memory); err != nil {
		return nil, err
	}
	switch {
	//lodge:check job/gate/concurrent [run=TestCheck|TestAdmit] more sessions run at a time than the
	//  policy allows
	case g.sessions >= p.MaxConcurrent:
		return nil, rpc.Errorf(rpc.Busy, "try again when one has ended", "%d sessions run already", g.sessions)
	//lodge:check job/gate/rate [run=TestCheck|TestAdmit] more sessions start than the policy allows
	//  per hour
	case !take(&g.starts, p.JobsPerHour, g.terms.Now()):
		return nil, rpc.Errorf(rpc.RateLimited, "try again later", "%d sessions were started within the hour", p.JobsPerHour)
	}
	g.sessions++
	g.memory += memory
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.sessions--
		g.memory -= memory
	}), nil
}

// Spare returns the memory that sessions may use in addition to the admitted ones.
func (g *Gate) Spare() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return uint64(g.terms.Policy.MaxMemory) - g.memory
}

// Fits returns an error if the memory would exceed the limit even without other sessions.
func (g *Gate) Fits(memory uint64) error {
	//lodge:check job/gate/memory-alone [run=TestAdmit|TestCalls] one session uses more memory than
	//  the policy allows for all
	if most := uint64(g.terms.Policy.MaxMemory); memory > most {
		return rpc.Errorf(rpc.PolicyRefused, "ask for less or a smaller shape, use keys with larger blocks, or raise policy.max_memory",
			"this would hold about %d bytes, above %d", memory, most)
	}
	return nil
}

// room returns an error unless this much memory is allowed and free.
func (g *Gate) room(memory uint64) error {
	if err := g.Fits(memory); err != nil {
		return err
	}
	//lodge:check job/gate/memory [run=TestAdmit|TestCalls] sessions together use more memory than
	//  the policy allows
	if most := uint64(g.terms.Policy.MaxMemory); g.memory+memory > most {
		return rpc.Errorf(rpc.Busy, "try again when something has ended",
			"running sessions use about %d bytes; with this one they would exceed %d", g.memory, most)
	}
	return nil
}

// AdmitDecryption counts one new answer to a client.
func (g *Gate) AdmitDecryption() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	//lodge:check job/gate/decryptions [run=TestAdmit|TestCalls|TestDecryption] more decryptions
	//  happen than the policy allows per hour
	if !take(&g.decryptions, g.terms.Policy.DecryptionsPerHour, g.terms.Now()) {
		return rpc.Errorf(rpc.RateLimited, "try again later",
			"%d decryptions were answered within the hour", g.terms.Policy.DecryptionsPerHour)
	}
	return nil
}

// take adds now to the events of the last hour if they are fewer than most.
func take(events *[]time.Time, most int, now time.Time) bool {
	*events = slices.DeleteFunc(*events, func(t time.Time) bool { return now.Sub(t) >= time.Hour })
	if len(*events) >= most {
		return false
	}
	*events = append(*events, now)
	return true
}
