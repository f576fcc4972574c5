package pacevet

import (
	"fmt"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
)

// Ignored names calls whose answer, a grant or a refusal, is not looked at.
var Ignored = &analysis.Analyzer{
	Name: "ignored",
	Doc: `ignored: the answer of Wait, Acquire or Allow is ignored

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
bucket on purpose; benchmarks, for Allow. Where the function's only result is an error it offers a fix for Wait and Acquire.`,
	URL:      "https://pkg.go.dev/github.com/nextfree/pace/reserve/plug/pacevet#Ignored",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      ignored,
}

func ignored(pass *analysis.Pass) (any, error) {
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
		d := analysis.Diagnostic{
			Pos: call.Pos(), End: call.End(),
			Message: fmt.Sprintf("the error of %s is ignored: callers without permits go too", u.fn.Name()),
		}
		if _, ok := c.Node().(*ast.ExprStmt); ok && returnsError(info, fn) {
			before := "if err := "
			if u.fn.Signature().Results().Len() == 2 {
				before = "if _, err := "
			}
			d.SuggestedFixes = []analysis.SuggestedFix{{Message: "Return the error", TextEdits: []analysis.TextEdit{
				{Pos: call.Pos(), End: call.Pos(), NewText: []byte(before)},
				{Pos: call.End(), End: call.End(), NewText: []byte("; err != nil {\n\treturn err\n}")},
			}}}
		}
		pass.Report(d)
	}
	return nil, nil
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

func returnsError(info *types.Info, fn ast.Node) bool {
	sig := signature(info, fn)
	return sig != nil && sig.Results().Len() == 1 && isError(sig.Results().At(0).Type())
}
