// Package kind describes the kinds of tuples that Lodge makes: their names and values, the steps
// that make a batch, the relation between the values, and the names in other systems. Plans, job
// validation, policies, tuple files, the checker, exports, the clients and the command derive from
// this table; docs/internals/adding-a-kind.md describes how to add a kind.
//
// The package holds data and sizes only. It imports nothing but the standard library, so that the
// coordinator and the independent checker can use it too.
package kind

import (
	"fmt"
	"slices"
)

// Kind identifies a kind of tuples. Digests of batches bind the number, so a number is never
// changed or used again. The zero Kind is invalid.
type Kind uint8

// Form says which shape all tuples of a class have in common.
type Form uint8

// The forms of shapes.
const (
	Unshaped     Form = iota // single field elements
	Matrices                 // two matrices and their product
	Convolutions             // an image, kernels and their convolution
)

// Products says which products of encrypted values a batch computes.
type Products uint8

// The products of a batch.
const (
	NoProducts     Products = iota
	Squares                 // each value of A with itself
	Pairs                   // each value of A with the value of B in the same slot
	MatrixProducts          // the matrices A and B
)

// Opening is the computation from products that all parties open. Tuples whose product is zero are
// dropped.
type Opening uint8

// The computations from opened products.
const (
	Unopened Opening = iota
	Roots            // of the squares: with a root s of a^2, the bit (a/s + 1)/2
	Inverses         // of the products: b/(ab) is the inverse of a
)

// Relation is the equation that the values of a tuple satisfy. The checker verifies it.
type Relation uint8

// The relations between the values of a tuple, in the order of its parts.
const (
	Unrelated            Relation = iota
	ProductOfFactors              // c = a b
	SquareOfFactor                // a2 = a a
	InverseOfFactor               // a a_inv = 1
	ZeroOrOne                     // a a = a
	MatrixProduct                 // c = a b for matrices
	ConvolutionOfFactors          // y is x convolved with w
)

// Domain says from which values a part is drawn.
type Domain uint8

// The domains of parts.
const (
	Derived Domain = iota // determined by the other parts
	Uniform               // uniform in the field: neither zero nor repeated, except by chance
	Bits                  // 0 or 1
)

// Vector names the vector of a batch that holds a part; see triple.Result.
type Vector uint8

// The vectors of a batch: two factors and the products.
const (
	A Vector = iota
	B
	C
)

// Part is one value of a tuple: an element, or an array of elements.
type Part struct {
	Name   string // in the clients; the MAC of the value is mac_Name
	Domain Domain
	Vector Vector
	Sides  []Side // the dimensions of an array, outermost first; none for a single element
}

// Descriptor describes a kind. Descriptors are shared: callers must not modify them.
type Descriptor struct {
	// Name of the kind in flags, configurations, JSON, records and files. The wire format's name is
	// KIND_ and the name in upper case.
	Name string
	// Title is the plural for people, such as "input masks".
	Title string
	// Help completes the line of the kind in the help of commands.
	Help string
	Form Form
	// Parts are the values of a tuple, in the order of its record, which continues with their MACs.
	// The order is that of their vectors.
	Parts    []Part
	Relation Relation

	// Products are the products of the factors, and Opening the computation from opened products.
	Products Products
	Opening  Opening
	// Owned is set if one party knows the values. That party alone proves the ciphertexts, and its
	// records end with the plaintext values.
	Owned bool

	// MPSPDZ starts the names of MP-SPDZ's files of these tuples. If there are none, NotMPSPDZ says
	// why.
	MPSPDZ, NotMPSPDZ string
}

var none Descriptor

// Describe returns the descriptor of a kind. For an unknown kind it is empty.
func (k Kind) Describe() *Descriptor {
	if !k.Known() {
		return &none
	}
	return &table[k]
}

// Known reports whether there is such a kind.
func (k Kind) Known() bool { return k > 0 && int(k) < len(table) }

// String returns the name of the kind.
func (k Kind) String() string {
	if !k.Known() {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return k.Describe().Name
}

// Multiplies reports whether batches compute products of encrypted values. Malformed evaluation
// keys could make these products wrong, with correct MACs, so a sacrifice verifies them.
func (k Kind) Multiplies() bool { return k.Describe().Products != NoProducts }

// Shaped reports whether classes of the kind have a shape, and batches are cut into blocks.
func (k Kind) Shaped() bool { return k.Describe().Form != Unshaped }

// Opens reports whether all parties open products to make these tuples.
func (k Kind) Opens() bool { return k.Describe().Opening != Unopened }

// Owned reports whether one party knows the values of these tuples.
func (k Kind) Owned() bool { return k.Describe().Owned }

// Values returns the number of field elements in one tuple of a valid shape, without MACs.
func (k Kind) Values(s Shape) (n int) {
	for _, p := range k.Describe().Parts {
		n += p.Elements(s)
	}
	return n
}

// Elements returns the number of field elements that one tuple of a valid shape has in each vector.
func (k Kind) Elements(s Shape) (a, b, c int) {
	var n [3]int
	for _, p := range k.Describe().Parts {
		n[p.Vector] = p.Elements(s)
	}
	return n[A], n[B], n[C]
}

// Clear returns the number of plaintext values that the record of a tuple ends with at its owner.
func (k Kind) Clear(s Shape) int {
	if !k.Owned() {
		return 0
	}
	return k.Values(s)
}

// All lists the kinds in their order in flags, configurations and documentation.
func All() (list []Kind) {
	for k := 1; k < len(table); k++ {
		list = append(list, Kind(k))
	}
	return list
}

// Names lists the names of the kinds that have all of the properties.
func Names(properties ...func(Kind) bool) (list []string) {
	for _, k := range All() {
		if !slices.ContainsFunc(properties, func(has func(Kind) bool) bool { return !has(k) }) {
			list = append(list, k.String())
		}
	}
	return list
}

// Of returns the kind with the given name, or 0.
func Of(name string) Kind {
	for _, k := range All() {
		if k.String() == name {
			return k
		}
	}
	return 0
}
