package pacevet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// Dropped names reservations that nobody waits for.
var Dropped = analyzer("Dropped", `a reservation is taken, and nobody waits for it

Reserve takes permits and says when they may be used. A caller that does not look at that time goes at once:

	if !lim.Reserve().OK() { // true for all but requests above the burst
		return errTooMany
	}

Use Allow (TryAcquire) for calls that are dropped, Wait (Acquire) for calls that wait, or keep the reservation and
look at its Delay. For permits that are taken after the fact write _ = lim.ReserveN(now, n).

It names a call whose reservation is not kept, or asked only for OK, and one of pace of which only the error is
kept. It leaves alone: a reservation that is assigned to the blank identifier; a test that looks at the
error only.`, dropped)

func dropped(pass *analysis.Pass) {
	info := pass.TypesInfo
	for c := range root(pass).Preorder((*ast.CallExpr)(nil)) {
		call := c.Node().(*ast.CallExpr)
		u := useOf(info, call)
		if u.kind != hold || u.n != nil && isNegative(info, u.n) { // the last is named by negative
			continue
		}
		say := func(why string) {
			pass.ReportRangef(call, "%s's reservation is dropped%s: it takes permits, and nobody waits for them",
				u.fn.Name(), why)
		}
		switch p := c.Parent().Node().(type) {
		case *ast.ExprStmt, *ast.GoStmt, *ast.DeferStmt:
			say("")
		case *ast.SelectorExpr:
			if p.Sel.Name == "OK" {
				say(" after OK")
			}
		case *ast.AssignStmt:
			if len(p.Rhs) != 1 {
				continue
			}
			if len(p.Lhs) == 2 && isBlank(p.Lhs[0]) && !isBlank(p.Lhs[1]) && !inTest(pass, call) {
				say("")
			}
			around, _ := enclosing(c)
			if r := variable(info, p.Lhs[0]); r != nil && around != nil && onlyOK(info, around, p.Lhs[0], r) {
				say(" after OK")
			}
		}
	}
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// onlyOK reports whether the variable is used by calls of OK alone, besides where it is set.
func onlyOK(info *types.Info, around ast.Node, set ast.Expr, r *types.Var) bool {
	if r.Pos() < around.Pos() || r.Pos() > around.End() { // of the package, a parameter, or of a function around
		return false
	}
	oks, uses := 0, 0
	ast.Inspect(around, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if variable(info, n.X) == r && n.Sel.Name == "OK" {
				oks++
			}
		case *ast.Ident:
			if n != set && info.ObjectOf(n) == r {
				uses++
			}
		}
		return true
	})
	return oks > 0 && oks == uses
}
