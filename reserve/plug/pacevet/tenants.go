package pacevet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
)

// Tenants names tenants of a fair.Queue that has none.
var Tenants = &analysis.Analyzer{
	Name: "tenants",
	Doc: `tenants: a queue without WithTenants serves all tenants of a class in one line

	q := pace.Must(fair.New(limiter, classes))
	q.Tenant("people", "acme").ReserveWithin(ctx, 1, pace.Forever)

Without the option a tenant's name is ignored: a tenant that asks for much delays the others. Write

	q := pace.Must(fair.New(limiter, classes, fair.WithTenants(nil)))

It names a call of Tenant on a variable or field that the package sets only to queues made without the option.`,
	URL:      "https://pkg.go.dev/github.com/nextfree/pace/reserve/plug/pacevet#Tenants",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      tenants,
}

const fairPath = pace + "/reserve/fair"

func tenants(pass *analysis.Pass) (any, error) {
	info := pass.TypesInfo
	queues := map[types.Object]bool{} // whether a variable has, for all that is known, only queues without tenants
	for c := range root(pass).Preorder((*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil), (*ast.KeyValueExpr)(nil)) {
		var names, values []ast.Expr
		switch n := c.Node().(type) {
		case *ast.AssignStmt:
			names, values = n.Lhs, n.Rhs
		case *ast.ValueSpec:
			for _, name := range n.Names {
				names = append(names, name)
			}
			values = n.Values
		case *ast.KeyValueExpr:
			names, values = []ast.Expr{n.Key}, []ast.Expr{n.Value}
		}
		for i, name := range names {
			o := object(info, name)
			if o == nil || !isNamed(o.Type(), fairPath, "Queue") || len(values) == 0 {
				continue
			}
			before, known := queues[o]
			queues[o] = (before || !known) && withoutTenants(info, values[min(i, len(values)-1)])
		}
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
	return nil, nil
}

// object returns the variable or field that an expression names, or nil.
func object(info *types.Info, e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return info.ObjectOf(e)
	case *ast.SelectorExpr:
		return info.ObjectOf(e.Sel)
	}
	return nil
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
