package main

import (
	"go/ast"
	"go/token"
)

// complexity returns a function's cognitive complexity, by the rules of G. Ann Campbell (SonarSource, 2018), as
// gocognit applies them to Go. Each branch and loop counts one, and one more for each that it is nested in. An else, a
// label that is jumped to, each run of && or of ||, and a call of the function itself count one.
func complexity(fn *ast.FuncDecl) int {
	c := counter{self: fn.Name.Name}
	if fn.Body != nil {
		c.block(fn.Body, 0)
	}
	return c.n
}

type counter struct {
	self string
	n    int
}

// block counts what is in a node, which is nested in so many others.
func (c *counter) block(node ast.Node, nesting int) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			c.n += 1 + nesting
			c.branch(n, nesting)
			return false
		case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt, *ast.ForStmt, *ast.RangeStmt:
			c.n += 1 + nesting
			c.nested(n, nesting+1)
			return false
		case *ast.FuncLit:
			c.block(n.Body, nesting+1)
			return false
		case *ast.BranchStmt:
			if n.Label != nil {
				c.n++
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				c.runs(n, token.ILLEGAL, nesting)
				return false
			}
		case *ast.CallExpr:
			if is(n.Fun, c.self) {
				c.n++
			}
		}
		return true
	})
}

// branch counts the parts of an if, and of each that follows it.
func (c *counter) branch(n *ast.IfStmt, nesting int) {
	if n.Init != nil {
		c.block(n.Init, nesting)
	}
	c.block(n.Cond, nesting)
	c.block(n.Body, nesting+1)
	switch e := n.Else.(type) {
	case *ast.IfStmt:
		c.n++
		c.branch(e, nesting)
	case *ast.BlockStmt:
		c.n++
		c.block(e, nesting+1)
	}
}

// nested counts the children of a node.
func (c *counter) nested(n ast.Node, nesting int) {
	ast.Inspect(n, func(child ast.Node) bool {
		if child == n {
			return true
		}
		if child != nil {
			c.block(child, nesting)
		}
		return false
	})
}

// runs counts the runs of one operator in a condition.
func (c *counter) runs(e ast.Expr, outer token.Token, nesting int) {
	b, ok := e.(*ast.BinaryExpr)
	if !ok || b.Op != token.LAND && b.Op != token.LOR {
		c.block(e, nesting)
		return
	}
	if b.Op != outer {
		c.n++
	}
	c.runs(b.X, b.Op, nesting)
	c.runs(b.Y, b.Op, nesting)
}

// is reports whether an expression is a name: f, or x.f.
func is(e ast.Expr, name string) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == name
	case *ast.SelectorExpr:
		return false // another value's method of that name, as often as not
	}
	return false
}
