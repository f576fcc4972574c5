package pacevet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// Tenants names tenants of a fair.Queue that has none.
var Tenants = analyzer("Tenants", `a queue without WithTenants serves all tenants of a class in one line

	q := pace.Must(fair.New(limiter, classes))
	q.Tenant("people", "acme").ReserveWithin(ctx, 1, pace.Forever)

Without the option a tenant's name is ignored: a tenant that asks for much delays the others. Write

	q := pace.Must(fair.New(limiter, classes, fair.WithTenants(nil)))

It names a call of Tenant on a variable or field that the package sets only to queues made without the
option.`, tenants)

const fairPath = pace + "/reserve/fair"

func tenants(pass *analysis.Pass) {
	info := pass.TypesInfo
	queues := map[types.Object]bool{} // whether a variable has, for all that is known, only queues without tenants
	for _, file := range pass.Files {
		values(info, file, func(o types.Object, value ast.Expr) {
			if isNamed(o.Type(), fairPath, "Queue") {
				before, known := queues[o]
				queues[o] = (before || !known) && withoutTenants(info, value)
			}
		})
	}
	for c := range root(pass).Preorder((*ast.CallExpr)(nil)) {
		call := c.Node().(*ast.CallExpr)
		if u := useOf(info, call); u.fn == nil || u.fn.Name() != "Tenant" || u.path() != fairPath {
			continue
		}
		if of := receiver(call); of != nil && (queues[object(info, of)] || withoutTenants(info, of)) {
			pass.ReportRangef(call, "the queue is made without fair.WithTenants, and ignores the tenant")
		}
	}
}

// withoutTenants reports whether e is fair.New, maybe in pace.Must, without the option.
func withoutTenants(info *types.Info, e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	if isMust(info, call) && len(call.Args) == 1 {
		return withoutTenants(info, call.Args[0])
	}
	if !isFunc(info, call, fairPath, "New") || call.Ellipsis.IsValid() {
		return false
	}
	for _, option := range call.Args[min(2, len(call.Args)):] {
		of, ok := ast.Unparen(option).(*ast.CallExpr)
		if !ok || isFunc(info, of, fairPath, "WithTenants") {
			return false // an option that can't be read may be that option
		}
	}
	return true
}
