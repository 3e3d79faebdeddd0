package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// A change puts before and after around the bytes [from, to) of a source, or, unless it keeps them,
// in their place.
type change struct {
	from, to      int
	before, after string
	keeps         bool
}

// insert puts text at an offset.
func insert(at int, text string) change { return change{from: at, to: at, before: text} }

// isOn is the Go expression that is true while the mutation with this number is on.
func isOn(number int) string { return fmt.Sprintf("lodgeMutated(%d)", number) }

// switchOff gives the source with one switch, numbered 1, for the check of the marker called name,
// and the bytes of the original that the edit concerns.
func switchOff(file, text, name string) (edited string, span [2]int, err error) {
	s, err := parseSource(file, []byte(text))
	if err != nil {
		return "", span, err
	}
	for _, m := range s.markers {
		if m.Name == name {
			changes, span, err := s.change(m, 1)
			return apply(s.text, changes), span, err
		}
	}
	return "", span, fmt.Errorf("%s: no marker in %s", name, file)
}

// change applies the operators of a marker to the code below it, or the default one when it has
// none: an if never holds, a case never matches, an operand, element or argument is dropped, and
// any other statement never runs. The edit only has an effect while the mutation with this number
// is on. The changes of several markers can be applied together.
func (s *source) change(m marker, number int) ([]change, [2]int, error) {
	chain := s.marked(m.below)
	if chain == nil {
		return nil, [2]int{}, fmt.Errorf("line %d holds no code that begins there: a marker stands directly above the check", m.below)
	}
	var changes []change
	edits := m.edits
	if edits == nil {
		edits = []operator{{name: "off"}}
	}
	for _, o := range edits {
		c, err := s.operate(chain, o, isOn(number))
		if err != nil {
			return nil, [2]int{}, err
		}
		changes = append(changes, c...)
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.from, b.from) })
	span := [2]int{changes[0].from, changes[len(changes)-1].to}
	for i := 1; i < len(changes); i++ {
		a, b := &changes[i-1], changes[i]
		if b.from >= a.to {
			continue
		}
		if a.keeps || b.keeps || a.before+b.before != "" {
			return nil, span, errors.New("two options edit the same code")
		}
		a.to = max(a.to, b.to) // two neighbours are dropped
		changes = slices.Delete(changes, i, i+1)
		i--
	}
	if !slices.ContainsFunc(changes, func(c change) bool { return !c.keeps }) {
		return changes, span, nil
	}
	if apply(s.text, changes) == string(s.text) {
		return nil, span, errors.New("the edit changes nothing")
	}
	changes, err := s.copied(chain, changes, number)
	return changes, span, err
}

// apply applies changes that are nested or do not overlap.
func apply(text []byte, changes []change) string {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b change) int {
		if order := cmp.Compare(a.from, b.from); order != 0 {
			return order
		}
		if a.from == a.to || b.from == b.to { // an insertion comes first
			return cmp.Compare(a.to, b.to)
		}
		return cmp.Compare(b.to, a.to) // the outer one comes first
	})
	var (
		out  strings.Builder
		open []change
		at   = 0
	)
	closeTo := func(end int) {
		for len(open) > 0 && open[len(open)-1].to <= end {
			c := open[len(open)-1]
			open = open[:len(open)-1]
			out.Write(text[at:c.to])
			out.WriteString(c.after)
			at = c.to
		}
	}
	for _, c := range changes {
		closeTo(c.from)
		out.Write(text[at:c.from])
		out.WriteString(c.before)
		if at = c.from; c.keeps {
			open = append(open, c)
		} else {
			at = c.to
		}
	}
	closeTo(len(text))
	out.Write(text[at:])
	return out.String()
}

// marked finds the outermost node that begins on a line, behind the nodes around it.
func (s *source) marked(line int) (chain []ast.Node) {
	var stack []ast.Node
	ast.Inspect(s.file, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		switch n.(type) {
		case *ast.File, *ast.CommentGroup, *ast.Comment, *ast.FieldList, *ast.BlockStmt:
			return chain == nil
		}
		if chain == nil && s.fset.Position(n.Pos()).Line == line && s.leads(n) {
			chain = slices.Clone(stack)
		}
		return chain == nil
	})
	return chain
}

// leads reports whether nothing stands before a node on its line, except the end of the block
// before an else.
func (s *source) leads(n ast.Node) bool {
	before := strings.Join(strings.Fields(s.lineBefore(n.Pos())), " ")
	return before == "" || before == "} else"
}

// lineBefore returns the text of a line before a position.
func (s *source) lineBefore(p token.Pos) string {
	at := s.offset(p)
	return string(s.text[bytes.LastIndexByte(s.text[:at], '\n')+1 : at])
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

func (s *source) textOf(n ast.Node) string {
	return string(s.text[s.offset(n.Pos()):s.offset(n.End())])
}

// operate gives the changes of one operator to the last node of the chain. They keep the original
// code where a condition can switch between it and the mutation.
func (s *source) operate(chain []ast.Node, o operator, on string) ([]change, error) {
	n := chain[len(chain)-1]
	switch o.name {
	case "off":
		return s.off(chain, on)
	case "return":
		text := strings.TrimSpace("return " + o.to)
		if fn, ok := n.(*ast.FuncDecl); ok && fn.Body != nil {
			at := s.offset(fn.Body.Lbrace) + 1
			return []change{{at, at, " if " + on + " { " + text + " };", "", true}}, nil
		}
		if _, ok := n.(ast.Stmt); !ok {
			return nil, errors.New("return= wants a statement or a function")
		}
		return []change{{s.offset(n.Pos()), s.offset(n.Pos()), "if " + on + " { " + text + " }; ", "", true}}, nil
	case "as":
		if c, ok := n.(*ast.CaseClause); ok {
			return []change{{from: s.offset(c.Colon) + 1, to: s.offset(c.End()), before: " " + o.to}}, nil
		}
		if _, ok := n.(ast.Stmt); !ok {
			return nil, errors.New("as= wants a statement")
		}
		return []change{{from: s.offset(n.Pos()), to: s.offset(n.End()), before: o.to}}, nil
	}
	want, err := parseElement(o.from)
	if err != nil {
		return nil, fmt.Errorf("%s is not an expression: %w", o.from, err)
	}
	at, err := s.find(n, want, o.from)
	if err != nil {
		return nil, err
	}
	at = append(slices.Clone(chain[:len(chain)-1]), at...)
	if o.name == "drop" {
		return s.drop(at, on)
	}
	to, err := parseElements(o.to)
	if err != nil {
		return nil, fmt.Errorf("%s is not an expression: %w", o.to, err)
	}
	text := o.to
	if _, ok := to[0].(*ast.BinaryExpr); ok && bound(at) {
		text = "(" + text + ")"
	}
	last := at[len(at)-1]
	return []change{{from: s.offset(last.Pos()), to: s.offset(last.End()), before: text}}, nil
}

// bound reports whether the parent of the last node binds it as an operand, so that an expression
// in its place wants parentheses.
func bound(chain []ast.Node) bool {
	switch p := chain[len(chain)-2].(type) {
	case *ast.BinaryExpr, *ast.UnaryExpr, *ast.StarExpr, *ast.SelectorExpr:
		return true
	case *ast.CallExpr:
		return p.Fun == chain[len(chain)-1]
	case *ast.IndexExpr:
		return p.X == chain[len(chain)-1]
	}
	return false
}

// off switches a whole check off.
func (s *source) off(chain []ast.Node, on string) ([]change, error) {
	switch n := chain[len(chain)-1].(type) {
	case *ast.IfStmt:
		return []change{s.never(n.Cond, on)}, nil
	case *ast.CaseClause:
		if sw, ok := chain[len(chain)-3].(*ast.SwitchStmt); !ok || sw.Tag != nil || len(n.List) == 0 {
			return []change{{from: s.offset(n.Pos()), to: s.offset(n.End())}}, nil
		}
		var all []change
		for _, e := range n.List {
			all = append(all, s.never(e, on))
		}
		return all, nil
	case ast.Stmt:
		return []change{{s.offset(n.Pos()), s.offset(n.End()), "if !" + on + " { ", " }", true}}, nil
	case ast.Expr:
		if !s.alone(chain) {
			return nil, errors.New("several elements stand on this line: mark the statement and use drop=")
		}
		return s.drop(chain, on)
	}
	return nil, errors.New("only a statement, case, operand, argument or element can be switched off: use drop=, swap= or return=")
}

// alone reports whether no other operand, argument or element follows the last node on its line.
func (s *source) alone(chain []ast.Node) bool {
	n, p := chain[len(chain)-1], chain[len(chain)-2]
	line := s.fset.Position(n.End()).Line
	alone := true
	ast.Inspect(p, func(x ast.Node) bool {
		if x == nil || x == p {
			return true
		}
		if x.Pos() >= n.End() && s.fset.Position(x.Pos()).Line == line {
			_, body := x.(*ast.BlockStmt)
			alone = alone && body
		}
		return false
	})
	return alone
}

// never makes a condition false.
func (s *source) never(e ast.Expr, on string) change {
	return change{s.offset(e.Pos()), s.offset(e.End()), "!" + on + " && (", ")", true}
}

// drop removes the last node of the chain from the operands, arguments or elements that it is one
// of.
func (s *source) drop(chain []ast.Node, on string) ([]change, error) {
	last := len(chain) - 1
	for last > 0 {
		if _, ok := chain[last-1].(*ast.ParenExpr); !ok {
			break
		}
		last--
	}
	n, from, to := chain[last], s.offset(chain[last].Pos()), s.offset(chain[last].End())
	var list []ast.Expr
	switch p := chain[last-1].(type) {
	case *ast.BinaryExpr:
		switch p.Op {
		case token.LOR:
			return []change{s.never(n.(ast.Expr), on)}, nil
		case token.LAND:
			return []change{{from, to, "(" + on + " || ", ")", true}}, nil
		}
		if n == p.Y {
			return []change{{from: s.offset(p.X.End()), to: to}}, nil
		}
		return []change{{from: from, to: s.offset(p.Y.Pos())}}, nil
	case *ast.CallExpr:
		list = p.Args
	case *ast.CompositeLit:
		list = p.Elts
	case *ast.CaseClause:
		list = p.List
	case ast.Stmt:
		if n == p { // a statement, not an expression
			return nil, errors.New("drop= wants an operand, an argument or an element")
		}
		if x, ok := p.(*ast.ExprStmt); ok {
			return s.off(append(slices.Clone(chain[:last-1]), x), on)
		}
	}
	i := slices.IndexFunc(list, func(e ast.Expr) bool { return e == n })
	switch {
	case i < 0:
		return nil, fmt.Errorf("%s is not an operand, an argument or an element that can be dropped: use swap=", s.textOf(n))
	case i+1 < len(list):
		to = s.offset(list[i+1].Pos())
	case i > 0:
		from = s.offset(list[i-1].End())
	}
	return []change{{from: from, to: to}}, nil
}

// parseElements parses expressions, or key: value as in a composite literal.
func parseElements(text string) ([]ast.Expr, error) {
	e, err := parser.ParseExpr("_{" + text + "}")
	if err != nil {
		return nil, err
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok || len(lit.Elts) == 0 {
		return nil, errors.New("want an expression")
	}
	return lit.Elts, nil
}

// parseElement parses one expression.
func parseElement(text string) (ast.Expr, error) {
	list, err := parseElements(text)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, errors.New("want one expression")
	}
	return list[0], nil
}

// find looks for an expression in a node and gives the path to it. It must occur once in the header
// of the statement, or else once in all of it.
func (s *source) find(n ast.Node, want ast.Expr, text string) ([]ast.Node, error) {
	canonical := canon(want)
	var found [][]ast.Node
	for _, part := range append(header(n), n) {
		if found = s.occurrences(part, canonical); len(found) == 1 && part != n {
			found[0] = append([]ast.Node{n}, found[0]...)
		}
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			break
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the marked code does not contain %s", text)
	}
	return nil, fmt.Errorf("the marked code contains %s %d times, want once", text, len(found))
}

// occurrences gives the paths from n to the expressions that print as canonical.
func (s *source) occurrences(n ast.Node, canonical string) (found [][]ast.Node) {
	var stack []ast.Node
	ast.Inspect(n, func(x ast.Node) bool {
		if x == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, x)
		if e, ok := x.(ast.Expr); ok && canon(e) == canonical {
			found = append(found, slices.Clone(stack))
		}
		return true
	})
	return found
}

// header gives the parts of a statement before its body, the most likely ones first.
func header(n ast.Node) []ast.Node {
	var parts []ast.Node
	add := func(list ...ast.Node) { parts = append(parts, list...) }
	switch n := n.(type) {
	case *ast.IfStmt:
		if add(n.Cond); n.Init != nil {
			add(n.Init)
		}
	case *ast.ForStmt:
		if n.Cond != nil {
			add(n.Cond)
		}
	case *ast.RangeStmt:
		add(n.X)
	case *ast.SwitchStmt:
		if n.Tag != nil {
			add(n.Tag)
		}
	case *ast.CaseClause:
		for _, e := range n.List {
			add(e)
		}
	}
	return parts
}

var spaces = regexp.MustCompile(`\s+`)

// canon prints an expression without regard to its layout.
func canon(e ast.Expr) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), e); err != nil {
		return ""
	}
	text := spaces.ReplaceAllString(b.String(), "")
	return strings.NewReplacer(",)", ")", ",}", "}").Replace(text)
}
