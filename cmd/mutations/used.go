package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
)

// keepUsed gives changes that keep variables of the function in use that only the replaced text has
// used: an assignment to _ before the marked statement.
func (s *source) keepUsed(chain []ast.Node, changes []change) (more []change) {
	after, err := parser.ParseFile(token.NewFileSet(), "", apply(s.text, changes), parser.SkipObjectResolution)
	if err != nil {
		return nil // the edit does not compile anyway, as the caller finds out
	}
	var fn *ast.FuncDecl
	var stmt ast.Stmt // the innermost one in a list of statements
	for i, n := range chain {
		if f, ok := n.(*ast.FuncDecl); ok {
			fn = f
		}
		if x, ok := n.(ast.Stmt); ok && listed(chain, i) {
			stmt = x
		}
	}
	if fn == nil || stmt == nil {
		return nil
	}
	inside := names(fn)
	declared := locals(fn, stmt)
	for _, d := range after.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != fn.Name.Name || receiver(f) != receiver(fn) {
			continue
		}
		now := names(f)
		for name := range declared {
			if inside[name] > 1 && now[name] == 1 {
				more = append(more, insert(s.offset(stmt.Pos()), "_ = "+name+"; "))
			}
		}
	}
	slices.SortFunc(more, func(a, b change) int { return cmp.Compare(a.before, b.before) })
	return more
}

// listed reports whether the node stands in a list of statements, where others can stand before it.
func listed(chain []ast.Node, i int) bool {
	if i == 0 {
		return false
	}
	switch chain[i].(type) {
	case *ast.CaseClause, *ast.CommClause, *ast.BlockStmt:
		return false
	}
	switch p := chain[i-1].(type) {
	case *ast.BlockStmt:
		return true
	case *ast.CaseClause:
		return true
	case *ast.CommClause:
		return p.Comm != chain[i]
	}
	return false
}

// names counts the identifiers of a node by name, without those behind a dot.
func names(n ast.Node) map[string]int {
	all := map[string]int{}
	ast.Inspect(n, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.SelectorExpr:
			ast.Inspect(x.X, func(y ast.Node) bool {
				if id, ok := y.(*ast.Ident); ok {
					all[id.Name]++
				}
				return true
			})
			return false
		case *ast.Ident:
			all[x.Name]++
		}
		return true
	})
	return all
}

// locals gives the names that a function declares by := or var before a statement.
func locals(fn *ast.FuncDecl, before ast.Stmt) map[string]bool {
	found := map[string]bool{}
	add := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok && id.Name != "_" && id.Pos() < before.Pos() {
			found[id.Name] = true
		}
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					add(e)
				}
			}
		case *ast.RangeStmt:
			add(n.Key)
			add(n.Value)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				add(id)
			}
		}
		return true
	})
	return found
}

func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	return canon(fn.Recv.List[0].Type)
}
