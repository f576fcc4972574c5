package pacevet

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

const (
	xtime = "golang.org/x/time/rate"
	pace  = "github.com/nextfree/pace"
	body  = pace + "/reserve/plug/xtime/rate"
)

type kind int

const (
	other  kind = iota
	wait        // it blocks until there are permits, and returns an error
	take        // it takes permits that are there now
	hold        // it reserves permits
	cancel      // it gives back a reservation
	create      // it makes a limiter
)

// A use is a call of a limiter's method or of a constructor.
type use struct {
	kind kind
	fn   *types.Func
	n    ast.Expr // how many permits; nil: one
}

func (u use) path() string { return u.fn.Pkg().Path() }

// isRate reports whether the function is of the API of golang.org/x/time/rate.
func (u use) isRate() bool { return u.path() == xtime || u.path() == body }

func (u use) isOne(info *types.Info) bool {
	if u.n == nil {
		return true
	}
	v := info.Types[u.n].Value
	return v != nil && constant.Compare(v, token.EQL, constant.MakeInt64(1))
}

func useOf(info *types.Info, call *ast.CallExpr) (u use) {
	fn := callee(info, call)
	if fn == nil || fn.Pkg().Path() != xtime && !isPace(fn.Pkg()) {
		return
	}
	if u.fn = fn; u.isRate() {
		u.kind = rateKinds[fn.Name()]
	} else {
		u.kind = paceKind(fn)
	}
	if u.kind == wait || u.kind == take || u.kind == hold {
		u.n = permitsOf(fn, call)
	}
	return
}

var rateKinds = map[string]kind{
	"NewLimiter": create,
	"Wait":       wait, "WaitN": wait,
	"Allow": take, "AllowN": take,
	"Reserve": hold, "ReserveN": hold,
	"Cancel": cancel, "CancelAt": cancel,
}

// makesFew has the packages whose New makes what a program has once: for all keys, hosts or clients.
var makesFew = map[string]bool{
	pace + "/reserve/keyed": true, pace + "/reserve/outbound": true, pace + "/reserve/inbound": true,
}

func paceKind(fn *types.Func) kind {
	name, results, method := fn.Name(), fn.Signature().Results(), fn.Signature().Recv()
	returns := func(typ string) bool { return results.Len() > 0 && isNamed(results.At(0).Type(), pace+"/reserve", typ) }
	switch {
	case name == "Wait" || name == "Acquire":
		if n := results.Len(); n > 0 && isError(results.At(n-1).Type()) {
			return wait
		}
	case method != nil && (name == "TryAcquire" || name == "Allow" || name == "TakeUpTo"):
		return take
	case strings.HasPrefix(name, "Reserve") && results.Len() == 2 && returns("Reservation"):
		return hold
	case name == "Cancel" && method != nil && isNamed(method.Type(), pace+"/reserve", "Reservation"):
		return cancel
	case method == nil && name == "New" && makesFew[fn.Pkg().Path()], method == nil && name == "NewUpstreams":
		return create
	case returns("Limiter"):
		if method == nil && strings.HasPrefix(name, "New") || method != nil && name == "Limiter" {
			return create
		}
	}
	return other
}

// permitsOf returns the argument that is the number of permits: the only int.
func permitsOf(fn *types.Func, call *ast.CallExpr) (n ast.Expr) {
	params := fn.Signature().Params()
	for i := range params.Len() {
		if b, ok := params.At(i).Type().(*types.Basic); ok && b.Kind() == types.Int && i < len(call.Args) {
			n = call.Args[i]
		}
	}
	return n
}

// isNamed reports whether t is the type, or a pointer to it.
func isNamed(t types.Type, path, name string) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == path
}

func has(tuple *types.Tuple, path, name string) bool {
	for i := range tuple.Len() {
		if isNamed(tuple.At(i).Type(), path, name) {
			return true
		}
	}
	return false
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// isFunc reports whether the call is of a function or method of a package by one of the names.
func isFunc(info *types.Info, call *ast.CallExpr, path string, names ...string) bool {
	fn := callee(info, call)
	return fn != nil && fn.Pkg().Path() == path && slices.Contains(names, fn.Name())
}

// callee returns the function or method of a package that a call names, or nil.
func callee(info *types.Info, call *ast.CallExpr) *types.Func {
	if fn, ok := typeutil.Callee(info, call).(*types.Func); ok && fn.Pkg() != nil {
		return fn
	}
	return nil
}

func isPace(p *types.Package) bool {
	return p.Path() == pace || strings.HasPrefix(p.Path(), pace+"/")
}

// variable returns the variable that an expression names, or nil.
func variable(info *types.Info, e ast.Expr) *types.Var {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		v, _ := info.ObjectOf(id).(*types.Var)
		return v
	}
	return nil
}

func receiver(call *ast.CallExpr) ast.Expr {
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		return sel.X
	}
	return nil
}

func calls(root ast.Node) (all []*ast.CallExpr) {
	ast.Inspect(root, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			all = append(all, c)
		}
		return true
	})
	return
}

// enclosing returns the body of the innermost function around a node, and the function.
func enclosing(c inspector.Cursor) (*ast.BlockStmt, ast.Node) {
	for f := range c.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		switch f := f.Node().(type) {
		case *ast.FuncDecl:
			return f.Body, f
		case *ast.FuncLit:
			return f.Body, f
		}
	}
	return nil, nil
}

func root(pass *analysis.Pass) inspector.Cursor {
	return pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root()
}

func inTest(pass *analysis.Pass, n ast.Node) bool {
	return strings.HasSuffix(pass.Fset.Position(n.Pos()).Filename, "_test.go")
}

// neverEnds reports whether a context is context.Background() or TODO(), or a variable that is never anything else.
func neverEnds(info *types.Info, around ast.Node, ctx ast.Expr) bool {
	if call, ok := ast.Unparen(ctx).(*ast.CallExpr); ok {
		return isFunc(info, call, "context", "Background", "TODO")
	}
	v := variable(info, ctx)
	if v == nil || around == nil {
		return false
	}
	times, never := 0, true
	values(info, around, func(o types.Object, value ast.Expr) {
		if o == v {
			times++
			call, ok := value.(*ast.CallExpr)
			never = never && ok && isFunc(info, call, "context", "Background", "TODO")
		}
	})
	return times > 0 && never
}

// values calls f with each variable and field that is set within a node, and its value: of several results, their call.
func values(info *types.Info, around ast.Node, f func(o types.Object, value ast.Expr)) {
	ast.Inspect(around, func(n ast.Node) bool {
		var names, values []ast.Expr
		switch n := n.(type) {
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
			if o := object(info, name); o != nil && len(values) > 0 {
				f(o, values[min(i, len(values)-1)])
			}
		}
		return true
	})
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
