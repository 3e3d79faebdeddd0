package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/params"
)

// Options say what to measure. Zero values of Field, Dimension and Parties take the default of each
// row, and results then have the names that scripts rely on; other values are part of the names
// where they change the work.
type Options struct {
	Sets      []*params.Set // parameter sets of operations and whole protocols
	Threshold []*lwe.Set    // sets of threshold keys
	Gates     []GateSets    // sets of multi-key gates
	Linear    LinearShapes  // shapes of two-party linear algebra
	Field     string        // default: p128, or the smallest field of the set
	Dimension int           // of matrix blocks; default: 128, or the largest that fits the set
	Parties   int           // default: 2 for operations and protocols, see also KeyParties
	Duration  time.Duration // of one row, unless a single call takes longer
	Resident  func() uint64 // resident memory of this process, where that is measured
}

const (
	defaultField      = "p128"
	defaultDim        = 128
	defaultParties    = 2
	defaultKeyParties = 3
)

// MaxDim is the largest dimension of matrix blocks that can be asked for.
const MaxDim = 512

// PartyCount is the number of parties of operations and of whole protocols.
func (o *Options) PartyCount() int {
	if o.Parties > 0 {
		return o.Parties
	}
	return defaultParties
}

// KeyParties is the number of parties that generate keys, that wait for their first batch, and that
// keep a stock.
func (o *Options) KeyParties() int {
	if o.Parties > 0 {
		return o.Parties
	}
	return defaultKeyParties
}

// FieldOf is the field that a set is measured with.
func (o *Options) FieldOf(set *params.Set) string {
	if o.Field != "" {
		return o.Field
	}
	for _, f := range set.Fields {
		if f.Name == defaultField {
			return f.Name
		}
	}
	return set.Fields[0].Name
}

// Dim is the dimension of the matrix products that a set is measured with.
func (o *Options) Dim(set *params.Set) int {
	if o.Dimension > 0 {
		return o.Dimension
	}
	for d := defaultDim; d > 1; d /= 2 {
		if o.resolves(set, d) == nil {
			return d
		}
	}
	return 1
}

func (o *Options) resolves(set *params.Set, dim int) error {
	_, err := params.Resolve(set, o.FieldOf(set), params.Use{Parties: o.PartyCount(), Dim: dim})
	return err
}

// Check returns an error if a set does not have the field, or its noise does not fit the dimension
// and the parties.
func (o *Options) Check() error {
	if o.Dimension > MaxDim {
		return fmt.Errorf("bench: dimension %d is larger than %d", o.Dimension, MaxDim)
	}
	for _, set := range o.Sets {
		if err := o.resolves(set, o.Dim(set)); err != nil {
			return err
		}
	}
	return nil
}

// fieldSuffix tells the results of a field other than the default from those of the default.
func (o *Options) fieldSuffix() string {
	if o.Field == "" || o.Field == defaultField {
		return ""
	}
	return "_" + o.Field
}

// dimSuffix does the same for results whose name does not have the dimension anyway.
func (o *Options) dimSuffix() string {
	if o.Dimension == 0 || o.Dimension == defaultDim {
		return ""
	}
	return fmt.Sprintf("_d%d", o.Dimension)
}

// dimWhat says the same to people.
func (o *Options) dimWhat() string {
	if o.dimSuffix() == "" {
		return ""
	}
	return fmt.Sprintf(", d = %d", o.Dimension)
}

// Suffix ends the names of a set's results: the set unless it is the headline set, and the field
// unless it is the default.
func (o *Options) Suffix(set *params.Set) string {
	return o.SetSuffix(set) + o.fieldSuffix()
}

// SetSuffix is the same without the field, for results that are of several.
func (o *Options) SetSuffix(set *params.Set) string {
	if set.Name == Headline {
		return ""
	}
	return "_" + slug(set.Name)
}

// slug is the same with the name of every set.
func (o *Options) slug(set *params.Set) string {
	return slug(set.Name) + o.fieldSuffix()
}

// slug is a set's name in names of results.
func slug(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// Headline is the set whose figures carry no name of a set, where names are those of the project's
// goals.
const Headline = "S14-64"

// Lines describe the parameter sets, by name, and the time that rows take.
func (o *Options) Lines() (lines [][2]string) {
	for _, s := range o.Sets {
		lines = append(lines, [2]string{s.Name, fmt.Sprintf(
			"N = 2^%d, q of %.0f bits in %d primes, digits of %d primes, keys %s, statistical security in bits: decryption %d, soundness %d, simulation %d",
			s.LogN, s.LogQ(), len(s.Q), s.DigitPrimes, s.Keys, s.LambdaDDec, s.LambdaSnd, s.LambdaSim)})
	}
	for _, s := range o.Threshold {
		lines = append(lines, [2]string{s.Name, fmt.Sprintf("threshold keys: N = 2^%d, Q of %.1f bits, messages from 0 to %d, dimension %d after the switch",
			s.LogN, math.Log2(float64(s.Q)), s.P-1, s.Dim)})
	}
	for _, g := range o.Gates {
		lines = append(lines, [2]string{g.Set, fmt.Sprintf("multi-key gates of up to %d parties; beside %s", g.Parties, g.Paper)})
	}
	return append(lines, [2]string{"time", fmt.Sprintf("%v for a row, or one call; ten times as long for whole protocols, or one batch", o.Duration)})
}

// GatesFor returns the sets for gates of exactly this number of parties: the smallest sets that
// allow it. For 0 parties it returns all sets.
func GatesFor(all []GateSets, parties int) []GateSets {
	if parties == 0 {
		return all
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b GateSets) int { return a.Parties - b.Parties })
	for _, g := range all {
		if g.Parties >= parties {
			g.Parties, g.Among = parties, 0
			return []GateSets{g}
		}
	}
	return nil
}
