package pacevet

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// Negative names negative numbers of tokens.
var Negative = analyzer("Negative", `a negative number of tokens, to give some back

golang.org/x/time/rate's ReserveN(now, -n) adds n tokens, which no document promises. reserve/plug/xtime/rate
gives nothing back for them. Cancel the reservation if nothing was used, or settle it with pace:

	r, err := lim.Pace().Reserve(ctx, estimate)
	...
	r.Settle(used)

It names a constant below zero and an expression that begins with a minus, in AllowN, ReserveN and WaitN.`, negative)

func negative(pass *analysis.Pass) {
	for c := range root(pass).Preorder((*ast.CallExpr)(nil)) {
		u := useOf(pass.TypesInfo, c.Node().(*ast.CallExpr))
		if u.n == nil || !u.isRate() {
			continue
		}
		if isNegative(pass.TypesInfo, u.n) {
			pass.ReportRangef(u.n, "%s of a negative number of tokens: cancel the reservation instead, or settle it",
				u.fn.Name())
		}
	}
}

func isNegative(info *types.Info, n ast.Expr) bool {
	if v := info.Types[n].Value; v != nil {
		return constant.Sign(v) < 0
	}
	minus, ok := ast.Unparen(n).(*ast.UnaryExpr)
	return ok && minus.Op == token.SUB
}
