package pacevet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// Ignored names calls whose answer, a grant or a refusal, is not looked at.
var Ignored = analyzer("Ignored", `the answer of Wait, Acquire or Allow is ignored

Wait returns an error when there are no permits: the context has ended, its deadline would come first, or more
than the burst is asked for. A caller that ignores it goes without permits.

	if err := lim.Wait(ctx); err != nil {
		return err
	}

Allow returns false when there is no permit now. A caller that ignores it goes all the same:

	if !lim.Allow() {
		return errBusy
	}

It leaves alone: an answer that is assigned to the blank identifier; one permit under context.Background() or
TODO(); a call whose next statement asks the context; AllowN and TryAcquire of more than one permit, which empty a
bucket on purpose; benchmarks, for Allow.`, ignored)

func ignored(pass *analysis.Pass) {
	info := pass.TypesInfo
	for c := range root(pass).Preorder((*ast.ExprStmt)(nil), (*ast.GoStmt)(nil)) {
		var call *ast.CallExpr
		switch n := c.Node().(type) {
		case *ast.ExprStmt:
			call, _ = ast.Unparen(n.X).(*ast.CallExpr)
		case *ast.GoStmt:
			call = n.Call
		}
		if call == nil {
			continue
		}
		u := useOf(info, call)
		around, fn := enclosing(c)
		if u.kind == take && u.fn.Name() != "TakeUpTo" && u.isOne(info) && !isBenchmark(info, fn) {
			pass.ReportRangef(call, "the result of %s is ignored: callers without a permit go too", u.fn.Name())
		}
		if u.kind != wait || len(call.Args) == 0 {
			continue
		}
		if neverEnds(info, around, call.Args[0]) && (!u.isRate() || u.isOne(info)) {
			continue
		}
		if next, ok := c.NextSibling(); ok && asksContext(info, next.Node()) {
			continue
		}
		pass.ReportRangef(call, "the error of %s is ignored: callers without permits go too", u.fn.Name())
	}
}

func asksContext(info *types.Info, n ast.Node) bool {
	if b, ok := n.(*ast.IfStmt); ok { // its condition, not what it does
		n = &ast.IfStmt{Init: b.Init, Cond: b.Cond, Body: &ast.BlockStmt{}}
	}
	for _, call := range calls(n) {
		if isFunc(info, call, "context", "Err", "Done", "Cause") {
			return true
		}
	}
	return false
}

// isBenchmark reports whether a function has a *testing.B or a *testing.PB.
func isBenchmark(info *types.Info, fn ast.Node) bool {
	sig := signature(info, fn)
	return sig != nil && (has(sig.Params(), "testing", "B") || has(sig.Params(), "testing", "PB"))
}

func signature(info *types.Info, fn ast.Node) *types.Signature {
	var t types.Type
	switch fn := fn.(type) {
	case *ast.FuncDecl:
		t = info.TypeOf(fn.Name)
	case *ast.FuncLit:
		t = info.TypeOf(fn)
	}
	sig, _ := t.(*types.Signature)
	return sig
}
