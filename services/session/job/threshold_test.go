package job

import (
	"slices"
	"testing"
	"time"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// thresholdSpec returns the spec of a job that makes threshold keys.
func thresholdSpec() *jobv1.SessionSpec {
	s := spec()
	s.Protocol, s.Purpose, s.Kind = jobv1.Protocol_PROTOCOL_THRESHOLD, jobv1.Purpose_PURPOSE_THRESHOLD, jobv1.Kind_KIND_KEYS
	s.Field, s.Tenant, s.Dim, s.Count, s.Shape, s.Threshold = "", "", 0, 0, nil, 1
	return s
}

func masksSpec() *jobv1.SessionSpec {
	s := thresholdSpec()
	s.Kind, s.Threshold, s.Count, s.Group, s.Form = jobv1.Kind_KIND_MASKS, 0, 1000, []uint32{0, 2}, jobv1.MaskForm_MASK_FORM_EXACT
	return s
}

func reshareSpec() *jobv1.SessionSpec {
	s := thresholdSpec()
	s.Kind, s.Epoch, s.FromEpoch, s.Group = jobv1.Kind_KIND_RESHARE, 8, 7, []uint32{1, 2, 3}
	s.FromHolders, s.FromThreshold, s.FromDigest = []uint32{2, 0, 1}, 1, make([]byte, 32)
	return s
}

// odd returns a list of n automorphisms.
func odd(n int) (list []uint32) {
	for i := range n {
		list = append(list, uint32(2*i+3))
	}
	return list
}

func TestValidateThreshold(t *testing.T) {
	rotating := thresholdSpec()
	rotating.Galois = odd(128)
	moved := reshareSpec()
	moved.Galois = odd(128)
	for _, s := range []*jobv1.SessionSpec{thresholdSpec(), masksSpec(), reshareSpec(), rotating, moved} {
		if err := Validate(s, time.Now()); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		spec   *jobv1.SessionSpec
		change func(*jobv1.SessionSpec)
		want   rpc.Code
	}{
		"triples with a group":     {spec(), func(s *jobv1.SessionSpec) { s.Group = []uint32{0, 1} }, rpc.Invalid},
		"triples with a threshold": {spec(), func(s *jobv1.SessionSpec) { s.Threshold = 1 }, rpc.Invalid},
		"triples with holders":     {spec(), func(s *jobv1.SessionSpec) { s.FromHolders = []uint32{1, 2} }, rpc.Invalid},
		"triples with a form":      {spec(), func(s *jobv1.SessionSpec) { s.Form = 1 }, rpc.Invalid},
		"triples from an epoch":    {spec(), func(s *jobv1.SessionSpec) { s.FromEpoch = 1 }, rpc.Invalid},
		"another purpose":          {thresholdSpec(), func(s *jobv1.SessionSpec) { s.Purpose = jobv1.Purpose_PURPOSE_TRIPLES }, rpc.KeyPurpose},
		"another protocol":         {thresholdSpec(), func(s *jobv1.SessionSpec) { s.Protocol = jobv1.Protocol_PROTOCOL_KEYGEN }, rpc.KeyPurpose},
		"triples for threshold":    {spec(), func(s *jobv1.SessionSpec) { s.Purpose = jobv1.Purpose_PURPOSE_THRESHOLD }, rpc.KeyPurpose},
		"order":                    {masksSpec(), func(s *jobv1.SessionSpec) { s.Group = []uint32{2, 0} }, rpc.Invalid},
		"twice":                    {masksSpec(), func(s *jobv1.SessionSpec) { s.Group = []uint32{2, 2} }, rpc.Invalid},
		"nobody's place":           {masksSpec(), func(s *jobv1.SessionSpec) { s.Group = []uint32{2, 1 << 20} }, rpc.Invalid},
		"alone":                    {masksSpec(), func(s *jobv1.SessionSpec) { s.Group = []uint32{2} }, rpc.Invalid},
		"no quorum":                {masksSpec(), func(s *jobv1.SessionSpec) { s.Group = nil }, rpc.Invalid},
		"no form":                  {masksSpec(), func(s *jobv1.SessionSpec) { s.Form = 0 }, rpc.Invalid},
		"strange form":             {masksSpec(), func(s *jobv1.SessionSpec) { s.Form = 77 }, rpc.Invalid},
		"no masks":                 {masksSpec(), func(s *jobv1.SessionSpec) { s.Count = 0 }, rpc.Invalid},
		"too many":                 {masksSpec(), func(s *jobv1.SessionSpec) { s.Count = 1 << 40 }, rpc.Invalid},
		"masks' threshold":         {masksSpec(), func(s *jobv1.SessionSpec) { s.Threshold = 1 }, rpc.Invalid},
		"field":                    {thresholdSpec(), func(s *jobv1.SessionSpec) { s.Field = "p64" }, rpc.Invalid},
		"tenant":                   {thresholdSpec(), func(s *jobv1.SessionSpec) { s.Tenant = "acme" }, rpc.Invalid},
		"count":                    {thresholdSpec(), func(s *jobv1.SessionSpec) { s.Count = 1 }, rpc.Invalid},
		"form of keys":             {thresholdSpec(), func(s *jobv1.SessionSpec) { s.Form = 1 }, rpc.Invalid},
		"no threshold":             {thresholdSpec(), func(s *jobv1.SessionSpec) { s.Threshold = 0 }, rpc.Invalid},
		"holders of new keys":      {thresholdSpec(), func(s *jobv1.SessionSpec) { s.FromHolders = []uint32{1, 2} }, rpc.Invalid},
		"from nowhere":             {reshareSpec(), func(s *jobv1.SessionSpec) { s.FromEpoch = 0 }, rpc.Invalid},
		"from the future":          {reshareSpec(), func(s *jobv1.SessionSpec) { s.FromEpoch = 8 }, rpc.Invalid},
		"keys from an epoch":       {thresholdSpec(), func(s *jobv1.SessionSpec) { s.FromEpoch = 1 }, rpc.Invalid},
		"a holder twice":           {reshareSpec(), func(s *jobv1.SessionSpec) { s.FromHolders = []uint32{2, 2} }, rpc.Invalid},
		"nobody holds":             {reshareSpec(), func(s *jobv1.SessionSpec) { s.FromHolders = []uint32{2, 1 << 20} }, rpc.Invalid},
		"too few hold":             {reshareSpec(), func(s *jobv1.SessionSpec) { s.FromHolders = []uint32{2, 0, 0} }, rpc.Invalid},
		"no old threshold":         {reshareSpec(), func(s *jobv1.SessionSpec) { s.FromThreshold = 0 }, rpc.Invalid},
		"huge old threshold":       {reshareSpec(), func(s *jobv1.SessionSpec) { s.FromThreshold = 1 << 31 }, rpc.Invalid},
		"no new holders":           {reshareSpec(), func(s *jobv1.SessionSpec) { s.Group = nil }, rpc.Invalid},
		"rotations of triples":     {spec(), func(s *jobv1.SessionSpec) { s.Galois = []uint32{3} }, rpc.Invalid},
		"rotations of masks":       {masksSpec(), func(s *jobv1.SessionSpec) { s.Galois = []uint32{3} }, rpc.Invalid},
		"no rotation of shares":    {reshareSpec(), func(s *jobv1.SessionSpec) { s.Galois = []uint32{4} }, rpc.Invalid},
		"an even rotation":         {thresholdSpec(), func(s *jobv1.SessionSpec) { s.Galois = []uint32{4} }, rpc.Invalid},
		"no rotation":              {thresholdSpec(), func(s *jobv1.SessionSpec) { s.Galois = []uint32{1} }, rpc.Invalid},
		"rotations twice":          {thresholdSpec(), func(s *jobv1.SessionSpec) { s.Galois = []uint32{3, 3} }, rpc.Invalid},
		"a rotation of no ring":    {thresholdSpec(), func(s *jobv1.SessionSpec) { s.Galois = []uint32{1<<20 + 1} }, rpc.Invalid},
		"too many rotations":       {thresholdSpec(), func(s *jobv1.SessionSpec) { s.Galois = odd(129) }, rpc.Invalid},
		"no digest":                {reshareSpec(), func(s *jobv1.SessionSpec) { s.FromDigest = nil }, rpc.Invalid},
	} {
		c.change(c.spec)
		if err := Validate(c.spec, time.Now()); rpc.FromError(err) == nil || rpc.FromError(err).Code != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestThresholdKeysAreAllowedByName(t *testing.T) {
	terms := terms()
	terms.Policy.Kinds = append(terms.Policy.Kinds, "masks", "reshare")
	terms.Policy.Purposes = append(terms.Policy.Purposes, "threshold")
	if err := NewGate(terms).Check(masksSpec()); rpc.FromError(err) == nil || rpc.FromError(err).Code != rpc.PassiveKeygen {
		t.Errorf("%v", err)
	}
	terms.AllowPassiveThreshold = true
	if err := NewGate(terms).Check(masksSpec()); err != nil {
		t.Error(err)
	}
	many := masksSpec()
	many.Count = terms.Policy.MaxCount + 1
	if err := NewGate(terms).Check(many); rpc.FromError(err) == nil || rpc.FromError(err).Code != rpc.PolicyRefused {
		t.Errorf("%v", err)
	}
}

func TestParticipants(t *testing.T) {
	for _, c := range []struct {
		spec *jobv1.SessionSpec
		want []uint32
	}{{spec(), nil}, {thresholdSpec(), nil}, {masksSpec(), []uint32{0, 2}}, {reshareSpec(), []uint32{0, 1, 2, 3}}} {
		if got := Participants(c.spec); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}
