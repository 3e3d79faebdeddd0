package job

import (
	"math"
	"slices"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// OfThreshold reports whether a kind exists only for threshold keys.
func OfThreshold(k jobv1.Kind) bool {
	return k == jobv1.Kind_KIND_MASKS || k == jobv1.Kind_KIND_RESHARE
}

// MakesEpoch reports whether a job of the kind makes an epoch, which may take the next number.
func MakesEpoch(k jobv1.Kind) bool { return k == jobv1.Kind_KIND_KEYS || k == jobv1.Kind_KIND_RESHARE }

// MaskForms are the forms of masks by their names in flags and records.
var MaskForms = map[string]jobv1.MaskForm{"exact": jobv1.MaskForm_MASK_FORM_EXACT, "paper": jobv1.MaskForm_MASK_FORM_PAPER}

// FormName returns the name of a form of masks.
func FormName(f jobv1.MaskForm) string {
	for name, x := range MaskForms {
		if x == f {
			return name
		}
	}
	return ""
}

// Participants returns the roster indexes of the parties of a session in ascending order; nil means
// all.
func Participants(s interface {
	GetKind() jobv1.Kind
	GetGroup() []uint32
	GetFromHolders() []uint32
}) []uint32 {
	if s.GetKind() != jobv1.Kind_KIND_RESHARE || len(s.GetGroup()) == 0 {
		return s.GetGroup()
	}
	both := slices.Clone(s.GetGroup())
	for _, p := range s.GetFromHolders() {
		if p > 0 {
			both = append(both, p-1)
		}
	}
	slices.Sort(both)
	return slices.Compact(both)
}

// validateThreshold checks the fields that only jobs for threshold keys have.
func validateThreshold(s *jobv1.SessionSpec) error {
	bad := func(format string, args ...any) error { return rpc.Errorf(rpc.Invalid, "", "spec: "+format, args...) }
	threshold := s.GetProtocol() == jobv1.Protocol_PROTOCOL_THRESHOLD
	reshare, masks := s.GetKind() == jobv1.Kind_KIND_RESHARE, s.GetKind() == jobv1.Kind_KIND_MASKS
	galois := len(s.GetGalois()) > 0
	from := s.GetFromEpoch() != 0 || len(s.GetFromDigest()) > 0 || s.GetFromThreshold() != 0 || len(s.GetFromHolders()) > 0
	switch {
	case threshold != (s.GetPurpose() == jobv1.Purpose_PURPOSE_THRESHOLD):
		return rpc.Errorf(rpc.KeyPurpose, "ask for purpose threshold, and only there", "purpose %s does not go with protocol %s", s.GetPurpose(), s.GetProtocol())
	case !threshold && (s.GetThreshold() != 0 || len(s.GetGroup()) > 0 || s.GetForm() != 0 || from || galois):
		return bad("only threshold keys have a threshold, a group, masks, automorphisms or an epoch that they come from")
	case !threshold:
		return nil
	case !ascending(s.GetGroup()) || len(s.GetGroup()) == 1 || slices.Contains(s.GetGroup(), config.MaxParties):
		return bad("a group is of two parties or more, in ascending order, below %d", config.MaxParties)
	case s.GetField() != "" || s.GetDim() != 0 || s.GetShape() != nil || s.GetTenant() != "":
		return bad("threshold keys have no field, block, shape or tenant")
	case masks != (s.GetCount() != 0) || s.GetCount() > math.MaxInt32:
		return bad("masks have a count, of at most %d, and nothing else has one", math.MaxInt32)
	case masks != (FormName(s.GetForm()) != "") || !masks && s.GetForm() != 0:
		return bad("masks have a form, exact or paper, and nothing else has one")
	case masks && len(s.GetGroup()) == 0:
		return bad("masks are made for a quorum, which is to be named")
	case masks != (s.GetThreshold() == 0):
		return bad("keys have a threshold, and masks have that of their keys")
	case galois && masks:
		return bad("only keys are made for automorphisms")
	case !automorphisms(s.GetGalois()):
		return bad("keys are made for at most %d automorphisms, odd, in ascending order, from 3 to %d", maxGalois, uint32(maxGaloisElement))
	case from != reshare:
		return bad("new shares come from an epoch, and nothing else does")
	case reshare:
		return validateReshare(s)
	}
	return nil
}

// validateReshare checks whose shares new ones come from.
func validateReshare(s *jobv1.SessionSpec) error {
	bad := func(format string, args ...any) error { return rpc.Errorf(rpc.Invalid, "", "spec: "+format, args...) }
	var present []uint32
	for _, p := range s.GetFromHolders() {
		if p > 0 {
			present = append(present, p)
		}
	}
	slices.Sort(present)
	switch {
	case s.GetFromEpoch() == 0 || s.GetFromEpoch() >= s.GetEpoch():
		return bad("new shares come from an earlier epoch than %d, not from %d", s.GetEpoch(), s.GetFromEpoch())
	case len(s.GetGroup()) == 0:
		return bad("new shares are for a group, which is to be named")
	case len(s.GetFromDigest()) != 32:
		return bad("the digest of the keys has 32 bytes")
	case len(s.GetFromHolders()) > config.MaxParties || !ascending(present) || len(present) > 0 && present[len(present)-1] > config.MaxParties:
		return bad("each share has one holder, below %d", config.MaxParties)
	case s.GetFromThreshold() == 0 || int64(len(present)) <= int64(s.GetFromThreshold()):
		return bad("%d holders take part, and more than the threshold must, which is %d", len(present), s.GetFromThreshold())
	}
	return nil
}

// Limits for keys of all sets; each set narrows them by its ring.
const (
	maxGalois        = 128
	maxGaloisElement = 1<<20 - 1
)

// automorphisms reports whether a list is one of automorphisms.
func automorphisms(list []uint32) bool {
	last := uint32(1)
	for _, g := range list {
		if g <= last || g%2 == 0 || g > maxGaloisElement {
			return false
		}
		last = g
	}
	return len(list) <= maxGalois
}

// ascending reports whether a list names different parties in their order.
func ascending(list []uint32) bool {
	for i, p := range list {
		if p > config.MaxParties || i > 0 && p <= list[i-1] {
			return false
		}
	}
	return true
}
