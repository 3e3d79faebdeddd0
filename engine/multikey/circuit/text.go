package circuit

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/lodge-mpc/lodge/engine/multikey"
)

// names are those of gates in netlists.
var names = func() map[string]Op {
	m := map[string]Op{"INV": Inv, "EQW": Copy}
	for _, g := range multikey.Gates() {
		m[g.String()] = Op(g)
	}
	return m
}()

// String returns the op's name in netlists, or an empty string for an unknown op.
func (o Op) String() string {
	switch o {
	case Inv:
		return "INV"
	case Copy:
		return "EQW"
	case False, True:
		return "EQ"
	}
	if name := multikey.Gate(o).String(); names[name] == o {
		return name
	}
	return ""
}

// Append appends the text of a netlist, without MAND, which Parse reads as single gates.
func (n *Netlist) Append(dst []byte) []byte {
	number := func(x int) {
		dst = append(strconv.AppendInt(dst, int64(x), 10), ' ')
	}
	end := func() { dst[len(dst)-1] = '\n' }
	number(len(n.Gates))
	number(n.Wires)
	end()
	for _, list := range [][]int{n.Inputs, n.Outputs} {
		number(len(list))
		for _, bits := range list {
			number(bits)
		}
		end()
	}
	for _, g := range n.Gates {
		k := g.Op.operands()
		number(max(k, 1))
		number(1)
		for _, w := range g.In[:k] {
			number(int(w))
		}
		if k == 0 {
			number(int(g.Op - False))
		}
		number(int(g.Out))
		dst = append(append(dst, g.Op.String()...), '\n')
	}
	return dst
}

// Parse reads a netlist. The error wraps ErrTooBig, ErrSyntax, or ErrWire, and names the line.
func Parse(text []byte) (*Netlist, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("%w: %d bytes (at most %d)", ErrTooBig, len(text), MaxText)
	}
	p := &parser{text: text, most: 2}
	n, err := p.netlist()
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", p.line, err)
	}
	if err := n.Check(); err != nil {
		return nil, err
	}
	return n, nil
}

// parser reads a text line by line.
type parser struct {
	text   []byte
	line   int
	fields [][]byte // of the line
	most   int      // maximal number per line
}

// next advances to the next line that has fields. If the line has too many fields, it keeps one
// more than the maximum, which the caller's count rejects, so that no line uses a multiple of its
// size in memory.
func (p *parser) next() bool {
	for len(p.text) > 0 {
		var line []byte
		line, p.text, _ = bytes.Cut(p.text, []byte{'\n'})
		p.line++
		p.fields = p.fields[:0]
		for len(line) > 0 && len(p.fields) <= p.most {
			end := bytes.IndexAny(line, " \t\r")
			if end < 0 {
				end = len(line)
			}
			if end > 0 {
				p.fields = append(p.fields, line[:end])
			}
			line = line[min(end+1, len(line)):]
		}
		if len(p.fields) > 0 {
			return true
		}
	}
	p.line++
	return false
}

// number returns field i of the line.
func (p *parser) number(i int) (int, error) {
	if i >= len(p.fields) {
		return 0, fmt.Errorf("%w: %d fields are too few", ErrSyntax, len(p.fields))
	}
	f := p.fields[i]
	if len(f) > 1 && f[0] == '0' || len(f) > 9 {
		return 0, fmt.Errorf("%w: %.20q is not a valid number", ErrSyntax, f)
	}
	x := 0
	for _, c := range f {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%w: %.20q is not a number", ErrSyntax, f)
		}
		x = 10*x + int(c-'0')
	}
	return x, nil
}

// exactly returns an error unless the line has the given number of fields.
func (p *parser) exactly(n int) error {
	if len(p.fields) != n {
		return fmt.Errorf("%w: %d fields, want %d", ErrSyntax, len(p.fields), n)
	}
	return nil
}

func (p *parser) netlist() (*Netlist, error) {
	if !p.next() {
		return nil, fmt.Errorf("%w: missing line", ErrSyntax)
	}
	n := new(Netlist)
	if err := p.exactly(2); err != nil {
		return nil, err
	}
	lines, err := p.number(0)
	if err != nil {
		return nil, err
	}
	if n.Wires, err = p.number(1); err != nil {
		return nil, err
	}
	if n.Wires > MaxWires || lines > n.Wires {
		return nil, fmt.Errorf("%w: %d gates and %d wires (at most %d)", ErrTooBig, lines, n.Wires, MaxWires)
	}
	p.most = 3*n.Wires + 3 // for MAND, which has the most
	if n.Inputs, err = p.values(n.Wires); err != nil {
		return nil, err
	}
	if n.Outputs, err = p.values(n.Wires); err != nil {
		return nil, err
	}
	for i := range lines {
		if !p.next() {
			return nil, fmt.Errorf("%w: %d gates, want %d", ErrSyntax, i, lines)
		}
		if err := p.gate(n); err != nil {
			return nil, err
		}
	}
	if p.next() {
		return nil, fmt.Errorf("%w: more than %d gates", ErrSyntax, lines)
	}
	return n, nil
}

// values reads the line of inputs or of outputs.
func (p *parser) values(wires int) ([]int, error) {
	if !p.next() {
		return nil, fmt.Errorf("%w: missing inputs or outputs", ErrSyntax)
	}
	count, err := p.number(0)
	if err != nil {
		return nil, err
	}
	if err := p.exactly(1 + count); err != nil {
		return nil, err
	}
	list, total := make([]int, count), 0
	for i := range list {
		if list[i], err = p.number(1 + i); err != nil {
			return nil, err
		}
		if total += list[i]; total > wires {
			return nil, fmt.Errorf("%w: more bits than %d wires", ErrWire, wires)
		}
	}
	return list, nil
}

// gate reads the line of a gate; a MAND line yields several gates.
func (p *parser) gate(n *Netlist) error {
	name := string(p.fields[len(p.fields)-1])
	in, err := p.number(0)
	if err != nil {
		return err
	}
	out, err := p.number(1)
	if err != nil {
		return err
	}
	if err := p.exactly(2 + in + out + 1); err != nil {
		return err
	}
	wires := make([]uint32, in+out)
	for i := range wires {
		w, err := p.number(2 + i)
		if err != nil {
			return err
		}
		if w >= n.Wires {
			return fmt.Errorf("%w: wire %d of %d", ErrWire, w, n.Wires)
		}
		wires[i] = uint32(w)
	}
	shape := func(want, results int) error {
		if in != want || out != results {
			return fmt.Errorf("%w: %s with %d wires in and %d out", ErrSyntax, name, in, out)
		}
		return nil
	}
	var add []Gate
	switch op := names[name]; {
	case name == "MAND":
		if err := shape(2*out, max(out, 1)); err != nil {
			return err
		}
		for i := range out {
			add = append(add, Gate{Op(multikey.And), [3]uint32{wires[i], wires[out+i]}, wires[2*out+i]})
		}
	case name == "EQ":
		if err := shape(1, 1); err != nil {
			return err
		}
		if wires[0] > 1 {
			return fmt.Errorf("%w: %d is not a bit", ErrSyntax, wires[0])
		}
		add = []Gate{{Op: False + Op(wires[0]), Out: wires[1]}}
	case op == 0:
		return fmt.Errorf("%w: unknown gate %.20q", ErrSyntax, name)
	default:
		if err := shape(op.operands(), 1); err != nil {
			return err
		}
		g := Gate{Op: op, Out: wires[in]}
		copy(g.In[:], wires[:in])
		add = []Gate{g}
	}
	if n.Gates = append(n.Gates, add...); len(n.Gates) > n.Wires {
		return fmt.Errorf("%w: more gates than %d wires", ErrWire, n.Wires)
	}
	return nil
}
