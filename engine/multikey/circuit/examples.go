package circuit

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/lodge-mpc/lodge/engine/multikey"
)

// Adder returns a netlist that adds two numbers of the given number of bits.
func Adder(width int) *Netlist {
	b := new(Builder)
	x, y := b.Input(width), b.Input(width)
	return b.Netlist(b.Add(x, y))
}

// Comparator returns a netlist that computes whether the first of two numbers is less than the
// second, and whether they are equal.
func Comparator(width int) *Netlist {
	b := new(Builder)
	x, y := b.Input(width), b.Input(width)
	return b.Netlist([]uint32{b.Less(x, y)}, []uint32{b.Equal(x, y)})
}

// FirstPrice returns an auction: it outputs the index of the highest bid, the first one of several,
// and this bid.
func FirstPrice(bidders, width int) *Netlist {
	b, bids := auction(bidders, width)
	winner := b.constant(0, indexBits(bidders))
	best := bids[0]
	for i, bid := range bids[1:] {
		higher := b.Less(best, bid)
		best = b.Choose(higher, bid, best)
		winner = b.Choose(higher, b.constant(i+1, len(winner)), winner)
	}
	return b.Netlist(winner, best)
}

// SecondPrice is FirstPrice with the second highest bid instead of the highest, which stays secret.
func SecondPrice(bidders, width int) *Netlist {
	b, bids := auction(bidders, width)
	winner := b.constant(0, indexBits(bidders))
	best, second := bids[0], b.constant(0, width)
	for i, bid := range bids[1:] {
		higher := b.Less(best, bid)
		above := b.Less(second, bid)
		second = b.Choose(higher, best, b.Choose(above, bid, second))
		best = b.Choose(higher, bid, best)
		winner = b.Choose(higher, b.constant(i+1, len(winner)), winner)
	}
	return b.Netlist(winner, second)
}

// Intersection returns a netlist that counts the numbers that two parties' lists without
// repetitions have in common.
func Intersection(first, second, width int) *Netlist {
	b := new(Builder)
	lists := [2][][]uint32{make([][]uint32, first), make([][]uint32, second)}
	for _, list := range lists {
		for i := range list {
			list[i] = b.Input(width)
		}
	}
	var common []uint32
	for _, x := range lists[0] {
		var same []uint32
		for _, y := range lists[1] {
			same = append(same, b.Equal(x, y))
		}
		common = append(common, b.tree(multikey.Or, same))
	}
	return b.Netlist(b.Count(common))
}

func auction(bidders, width int) (b *Builder, bids [][]uint32) {
	b = new(Builder)
	for range bidders {
		bids = append(bids, b.Input(width))
	}
	return b, bids
}

// indexBits returns the number of bits of an index below the given number.
func indexBits(n int) int { return max(1, bits.Len(uint(n-1))) }

// constant returns a number of the given number of bits.
func (b *Builder) constant(x, width int) (value []uint32) {
	for i := range width {
		value = append(value, b.Constant(x>>i&1 == 1))
	}
	return value
}

// Example describes a netlist of this package: its name, its arguments, and their maxima.
type Example struct {
	Name      string
	Arguments []string
	Most      []int
	Make      func(arguments []int) *Netlist
}

// Examples lists the examples.
func Examples() []Example {
	return []Example{
		{"adder", []string{"bits"}, []int{1 << 12}, func(a []int) *Netlist { return Adder(a[0]) }},
		{"comparator", []string{"bits"}, []int{1 << 12}, func(a []int) *Netlist { return Comparator(a[0]) }},
		{"first-price-auction", []string{"bidders", "bits"}, []int{multikey.MaxParties, 256}, func(a []int) *Netlist { return FirstPrice(a[0], a[1]) }},
		{"second-price-auction", []string{"bidders", "bits"}, []int{multikey.MaxParties, 256}, func(a []int) *Netlist { return SecondPrice(a[0], a[1]) }},
		{"intersection-size", []string{"first", "second", "bits"}, []int{64, 64, 64}, func(a []int) *Netlist { return Intersection(a[0], a[1], a[2]) }},
	}
}

// MakeExample builds the named example. The error wraps ErrInputs.
func MakeExample(name string, arguments ...int) (*Netlist, error) {
	all := Examples()
	i := slices.IndexFunc(all, func(e Example) bool { return e.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%w: unknown example %.40q", ErrInputs, name)
	}
	e := all[i]
	if len(arguments) != len(e.Arguments) {
		return nil, fmt.Errorf("%w: %s takes %d numbers: %v", ErrInputs, name, len(e.Arguments), e.Arguments)
	}
	for j, x := range arguments {
		if x < 1 || x > e.Most[j] {
			return nil, fmt.Errorf("%w: %s of %s must be from 1 to %d", ErrInputs, e.Arguments[j], name, e.Most[j])
		}
	}
	n := e.Make(arguments)
	return n, n.Check()
}
