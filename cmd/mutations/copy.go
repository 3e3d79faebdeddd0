package main

import (
	"errors"
	"fmt"
	"go/ast"
	"strings"
)

// copied gives changes with the effect of edits that no condition can express, such as a dropped
// argument. The end of the file receives an edited copy of the function, or of the initial value of
// a package variable, and a condition chooses between the original and the copy. The copy has the
// line numbers of the original.
func (s *source) copied(chain []ast.Node, edits []change, number int) ([]change, error) {
	switch d := chain[1].(type) {
	case *ast.FuncDecl:
		if d.Body == nil {
			return nil, errors.New("the function has no body")
		}
		return s.copiedFunction(d, append(s.keepUsed(chain, edits), edits...), number)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for _, e := range v.Values {
				if s.offset(e.Pos()) <= edits[0].from && edits[len(edits)-1].to <= s.offset(e.End()) {
					return s.copiedValue(v, e, edits, number), nil
				}
			}
		}
	}
	return nil, errors.New("only functions and the values of variables can be edited")
}

func (s *source) copiedFunction(fn *ast.FuncDecl, edits []change, number int) ([]change, error) {
	name := fmt.Sprintf("lodgeCopy%d%s", number, fn.Name.Name)
	call := name
	if fn.Recv != nil {
		call = s.arguments(fn.Recv)[0] + "." + name
	}
	if fn.Type.TypeParams != nil {
		var types []string
		for _, f := range fn.Type.TypeParams.List {
			for _, id := range f.Names {
				types = append(types, id.Name)
			}
		}
		call += "[" + strings.Join(types, ", ") + "]"
	}
	call += "(" + strings.Join(s.arguments(fn.Type.Params), ", ") + ")"
	if fn.Type.Results == nil {
		call += "; return"
	} else {
		call = "return " + call
	}
	begin := s.offset(fn.Body.Lbrace)
	inner, err := shift(edits, begin+1, s.offset(fn.Body.Rbrace))
	if err != nil {
		return nil, err
	}
	signature := string(s.text[s.offset(fn.Pos()):s.offset(fn.Name.Pos())]) + name +
		string(s.text[s.offset(fn.Name.End()):begin+1])
	body := apply(s.text[begin+1:s.offset(fn.Body.Rbrace)], inner)
	return []change{
		insert(begin+1, " if "+isOn(number)+" { "+call+" };"),
		insert(len(s.text), s.lineOf(fn)+signature+body+"}\n"),
	}, nil
}

func (s *source) copiedValue(v *ast.ValueSpec, e ast.Expr, edits []change, number int) []change {
	from, to := s.offset(e.Pos()), s.offset(e.End())
	inner, _ := shift(edits, from, to)
	name := fmt.Sprintf("lodgeCopy%d", number)
	pick, typ := "lodgePick", ""
	if v.Type != nil {
		typ = " " + s.textOf(v.Type)
		pick += "[" + s.textOf(v.Type) + "]"
	}
	return []change{
		{from, to, pick + "(" + isOn(number) + ", " + name + ", ", ")", true},
		insert(len(s.text), s.lineOf(e)+"var "+name+typ+" = "+apply(s.text[from:to], inner)+"\n"),
	}
}

// arguments gives an argument for each parameter. The function cannot use a parameter without a
// name, so any value serves.
func (s *source) arguments(params *ast.FieldList) (all []string) {
	for _, f := range params.List {
		names := f.Names
		if names == nil {
			names = []*ast.Ident{{Name: "_"}}
		}
		for _, id := range names {
			variadic, ok := f.Type.(*ast.Ellipsis)
			switch {
			case id.Name != "_" && ok:
				all = append(all, id.Name+"...")
			case id.Name != "_":
				all = append(all, id.Name)
			case ok:
				all = append(all, "*new("+s.textOf(variadic.Elt)+")")
			default:
				all = append(all, "(*new("+s.textOf(f.Type)+"))")
			}
		}
	}
	return all
}

// lineOf gives a comment that makes the next line count as that of a node.
func (s *source) lineOf(n ast.Node) string {
	return fmt.Sprintf("\n//line :%d:1\n", s.fset.Position(n.Pos()).Line)
}

// shift makes changes relative to from. It returns an error if one is outside of [from, to).
func shift(changes []change, from, to int) ([]change, error) {
	moved := make([]change, len(changes))
	for i, c := range changes {
		if c.from < from || c.to > to {
			return nil, errors.New("the edit concerns more than the body of the function")
		}
		c.from, c.to = c.from-from, c.to-from
		moved[i] = c
	}
	return moved, nil
}
