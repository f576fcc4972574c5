package pacevet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// RemoteAddr names limits by a client's address that has the client's port in it.
var RemoteAddr = analyzer("RemoteAddr", `a key with the client's port limits nothing

	if !perClient.TryAcquire(r.RemoteAddr, 1) {

RemoteAddr is an address and a port, and each connection has another port: a client that connects anew has a new, full
limiter. Behind a proxy it is the proxy's address. Use one of inbound's addresses, which leave the port out:

	client := pace.Must(inbound.RemoteAddr())
	limits := pace.Must(inbound.New([]inbound.Tier{inbound.PerKey("client", client, policy)}))

It names an http.Request's RemoteAddr, and the text of a net.Addr, as a key of keyed's and shared's limiters, of a map
of limiters, and as the result of a function that is handed to pace.`, remoteAddr)

func remoteAddr(pass *analysis.Pass) {
	info := pass.TypesInfo
	bodies := map[types.Object]*ast.BlockStmt{}
	for c := range root(pass).Preorder((*ast.FuncDecl)(nil)) {
		fn := c.Node().(*ast.FuncDecl)
		bodies[info.Defs[fn.Name]] = fn.Body
	}
	check := func(around *ast.BlockStmt, e ast.Expr) {
		if withPort(info, around, e) {
			pass.ReportRangef(e, "a key with the client's port limits nothing: use inbound.RemoteAddr, or net.SplitHostPort")
		}
	}
	for c := range root(pass).Preorder((*ast.CallExpr)(nil), (*ast.IndexExpr)(nil)) {
		around, _ := enclosing(c)
		switch n := c.Node().(type) {
		case *ast.IndexExpr:
			if m, ok := info.TypeOf(n.X).Underlying().(*types.Map); ok && isLimiter(m.Elem()) {
				check(around, n.Index)
			}
		case *ast.CallExpr:
			fn := callee(info, n)
			if fn == nil || !isPace(fn.Pkg()) {
				continue
			}
			for _, arg := range n.Args {
				if fn.Signature().Recv() != nil {
					check(around, arg)
				}
				for result := range results(info, bodies, arg) {
					check(bodyOf(info, bodies, arg), result)
				}
			}
		}
	}
}

// bodyOf returns the body of a function literal or of a function of this package, or nil.
func bodyOf(info *types.Info, bodies map[types.Object]*ast.BlockStmt, e ast.Expr) *ast.BlockStmt {
	switch e := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		return e.Body
	case *ast.Ident:
		return bodies[info.ObjectOf(e)]
	case *ast.SelectorExpr:
		return bodies[info.ObjectOf(e.Sel)]
	}
	return nil
}

// results yields what a function returns, the functions inside it apart.
func results(info *types.Info, bodies map[types.Object]*ast.BlockStmt, e ast.Expr) func(func(ast.Expr) bool) {
	return func(yield func(ast.Expr) bool) {
		body := bodyOf(info, bodies, e)
		if body == nil {
			return
		}
		ast.Inspect(body, func(n ast.Node) bool {
			if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
				yield(r.Results[0])
			}
			_, inside := n.(*ast.FuncLit)
			return !inside
		})
	}
}

// withPort reports whether e is a client's address with its port, or a variable that is set to that once.
func withPort(info *types.Info, around *ast.BlockStmt, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name == "RemoteAddr" && isNamed(info.TypeOf(e.X), "net/http", "Request")
	case *ast.CallExpr:
		sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "String" && isNamed(info.TypeOf(sel.X), "net", "Addr")
	case *ast.Ident:
		v := variable(info, e)
		if v == nil || around == nil {
			return false
		}
		only, times := ast.Expr(nil), 0
		values(info, around, func(o types.Object, value ast.Expr) {
			if o == v {
				times++
				only = value
			}
		})
		return times == 1 && withPort(info, nil, only)
	}
	return false
}

func isLimiter(t types.Type) bool {
	return isNamed(t, xtime, "Limiter") || isNamed(t, body, "Limiter") || isNamed(t, pace+"/internal/engine", "Limiter") ||
		isNamed(t, pace+"/reserve", "Limiter")
}
