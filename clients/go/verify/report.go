package verify

import "github.com/lodge-mpc/lodge/clients/go/tuplefile"

// The checks that a triple can fail.
const (
	CheckProduct    = "product"    // c = a*b, or the relation between the values for other kinds
	CheckMACA       = "mac_a"      // the sum of a's MAC shares is alpha*a; likewise for b and c
	CheckMACB       = "mac_b"      //
	CheckMACC       = "mac_c"      //
	CheckDegenerate = "degenerate" // a factor is zero
	CheckRepeated   = "repeated"   // a factor occurs twice
	CheckClear      = "clear"      // the sum of the shares of an input mask equals its owner's plaintext value
)

// Failure is one check that one triple failed.
type Failure struct {
	Tuple int64  `json:"tuple"` // from 0
	Check string `json:"check"`
	Wrong int    `json:"wrong"` // number of wrong values; for products of matrices, of wrong rows
}

// Report is the result of a run that could read all data.
type Report struct {
	Kind           string                 `json:"kind"`
	Params         string                 `json:"params"`
	Field          string                 `json:"field"`
	ModulusBits    int                    `json:"modulus_bits"`
	Parties        int                    `json:"parties"`
	Epoch          uint64                 `json:"epoch"`
	Batch          string                 `json:"batch"`
	Dims           tuplefile.Dims         `json:"dims"`
	Convolution    *tuplefile.Convolution `json:"convolution,omitempty"`
	InputParty     int                    `json:"input_party,omitempty"` // of input masks: the party that knows the values
	KeygenSecurity string                 `json:"keygen_security"`
	NoSacrifice    bool                   `json:"no_sacrifice,omitempty"` // of products: made without a sacrifice
	Tuples         int64                  `json:"tuples"`
	Verified       int64                  `json:"verified"` // triples that passed every check
	Failed         map[string]int64       `json:"failed"`   // triples by failed check; empty if all passed
	Failures       []Failure              `json:"failures"` // the first ones, in order
	// Vectors per product in Freivalds' method; 0 for scalars, whose products are checked exactly.
	FreivaldsVectors int `json:"freivalds_vectors"`
	// Triples whose factors were compared with each other.
	ComparedForRepeats int64 `json:"compared_for_repeats"`
}

// OK reports whether there was at least one triple and every triple passed every check.
func (r *Report) OK() bool { return r.Tuples > 0 && r.Verified == r.Tuples }
