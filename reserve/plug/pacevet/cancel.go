package pacevet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// DeferCancel names deferred Cancels of reservations that are used.
var DeferCancel = analyzer("DeferCancel", `a deferred Cancel gives back what was used

	r := lim.Reserve()
	defer r.Cancel()

In golang.org/x/time/rate this does nothing once the reservation's time has come. In pace it gives back what
the function has used: at 10/s a caller whose calls take 50 ms would make 20 a second. Cancel where the function
leaves without having used the tokens:

	select {
	case <-time.After(r.Delay()):
	case <-ctx.Done():
		r.Cancel()
		return ctx.Err()
	}

It leaves alone: a Cancel under a condition; a function that calls Settle, hands its reservation of pace on, or
only looks at the time.`, deferCancel)

func deferCancel(pass *analysis.Pass) {
	info := pass.TypesInfo
	for c := range root(pass).Preorder((*ast.DeferStmt)(nil)) {
		d := c.Node().(*ast.DeferStmt)
		call := certainCancel(info, d)
		around, _ := enclosing(c)
		if call == nil || around == nil {
			continue
		}
		r := variable(info, receiver(call))
		if r == nil || handedOn(info, around, d, r) || onlyLooks(info, around, d, r) {
			continue
		}
		pass.ReportRangef(d, "a deferred Cancel gives back permits that were used: "+
			"cancel only where the function leaves without using them")
	}
}

// certainCancel returns the call of Cancel that a defer always makes, directly or in a function literal.
func certainCancel(info *types.Info, d *ast.DeferStmt) *ast.CallExpr {
	if useOf(info, d.Call).kind == cancel {
		return d.Call
	}
	lit, ok := ast.Unparen(d.Call.Fun).(*ast.FuncLit)
	if !ok {
		return nil
	}
	for _, s := range lit.Body.List {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := ast.Unparen(s.X).(*ast.CallExpr); ok && useOf(info, call).kind == cancel {
				return call
			}
		case *ast.AssignStmt, *ast.DeclStmt, *ast.IncDecStmt:
		default: // it may leave
			return nil
		}
	}
	return nil
}

// handedOn reports whether the function settles the reservation, gives it away, or assigns it again.
func handedOn(info *types.Info, around ast.Node, d *ast.DeferStmt, r *types.Var) (yes bool) {
	isPace := isNamed(r.Type(), pace+"/reserve", "Reservation")
	methods := map[*ast.Ident]bool{}
	ast.Inspect(around, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if id, ok := ast.Unparen(n.X).(*ast.Ident); ok && info.ObjectOf(id) == r {
				methods[id] = true
				yes = yes || n.Sel.Name == "Settle"
			}
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				if id, ok := ast.Unparen(l).(*ast.Ident); ok && info.ObjectOf(id) == r {
					methods[id] = true
					yes = yes || n.Pos() > d.Pos()
				}
			}
		case *ast.Ident:
			if isPace && info.Uses[n] == r && !methods[n] {
				yes = true
			}
		}
		return true
	})
	return
}

// onlyLooks reports whether nothing after the defer can be what the permits are for.
func onlyLooks(info *types.Info, around ast.Node, d *ast.DeferStmt, r *types.Var) bool {
	for _, call := range calls(around) {
		if call.Pos() < d.End() {
			continue
		}
		if info.Types[call.Fun].IsType() || info.Types[call.Fun].IsBuiltin() || variable(info, receiver(call)) == r {
			continue
		}
		fn := callee(info, call)
		if fn == nil {
			return false
		}
		switch fn.Pkg().Path() {
		case "errors", "fmt", "log", "log/slog", "math", "strconv", "strings":
		case "time":
			switch fn.Name() {
			case "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick":
				return false
			}
		default:
			return false
		}
	}
	return true
}
