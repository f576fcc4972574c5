package pacevet

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
)

// PerRequest names limiters that are made for each request.
var PerRequest = analyzer("PerRequest", `a limiter that is made for each request limits nothing

	func handle(w http.ResponseWriter, r *http.Request) {
		lim := rate.NewLimiter(10, 5)
		if !lim.Allow() {

A new limiter is full, so its first request always goes. Make one for all requests: a package's variable, or a field
of the handler. For a limiter for each client use pace's keyed.

It names a limiter that is made where it is asked, or made in an HTTP handler (also gin's, echo's, fiber's), a
RoundTrip, a gRPC interceptor or the body of a loop, and only asked there; likewise keyed's and shared's limiters, a
transport of outbound, also as an http.Client's, and a middleware of inbound. It leaves alone: a limiter that is
stored, returned, handed on or captured; one that is asked in a loop inside, as for the chunks of a download; one
in a loop whose rate depends on the loop's variables; in a test, one that is made where it is asked, or for each
round of a loop.`, perRequest)

func perRequest(pass *analysis.Pass) {
	info := pass.TypesInfo
	for c := range root(pass).Preorder((*ast.CallExpr)(nil)) {
		call := c.Node().(*ast.CallExpr)
		if useOf(info, call).kind != create {
			continue
		}
		made := whole(info, c)
		if asked, ok := made.Parent().Parent().Node().(*ast.CallExpr); ok && receiver(asked) == made.Node() {
			if isAsked(info, asked) && !inTest(pass, call) {
				pass.ReportRangef(call, "a limiter that is made where it is asked limits nothing: make one for all")
			}
			continue
		}
		v, often := local(info, made), repeated(info, made, call)
		if inTest(pass, call) && often == eachRound {
			continue
		}
		if v != nil && often != "" && onlyAsked(info, made, v) {
			pass.ReportRangef(call, "a limiter that is made for %s limits nothing: make one for all", often)
		}
	}
}

// whole returns the expression around a call that makes a limiter: with pace.Must, parentheses, and an http.Client
// whose transport it is.
func whole(info *types.Info, made inspector.Cursor) inspector.Cursor {
	for {
		p := made.Parent()
		switch n := p.Node().(type) {
		case *ast.CallExpr:
			if n.Fun == made.Node() || !isMust(info, n) {
				return made
			}
		case *ast.ParenExpr, *ast.KeyValueExpr:
		case *ast.CompositeLit:
			if !isNamed(info.TypeOf(n), "net/http", "Client") {
				return made
			}
		case *ast.UnaryExpr:
			if n.Op != token.AND {
				return made
			}
		default:
			return made
		}
		made = p
	}
}

const eachRound = "each round of a loop"

// repeated says for what a limiter is made again and again, or "".
func repeated(info *types.Info, made inspector.Cursor, call *ast.CallExpr) string {
	loop, fn := around(made)
	switch {
	case fn.Node() == nil:
	case loop != nil:
		if !dependsOn(info, call, loop) {
			return eachRound
		}
	case isHandler(info, fn.Node()):
		return "each request"
	}
	return ""
}

func isMust(info *types.Info, call *ast.CallExpr) bool {
	return isFunc(info, call, pace, "Must") || isFunc(info, call, pace+"/reserve", "Must")
}

// local returns the local variable that is declared with the expression.
func local(info *types.Info, made inspector.Cursor) *types.Var {
	switch p := made.Parent().Node().(type) {
	case *ast.AssignStmt:
		if p.Tok == token.DEFINE && len(p.Rhs) == 1 {
			v, _ := info.Defs[ident(p.Lhs[0])].(*types.Var)
			return v
		}
	case *ast.ValueSpec:
		if len(p.Values) == 1 {
			if v, _ := info.Defs[p.Names[0]].(*types.Var); v != nil && v.Parent() != v.Pkg().Scope() {
				return v
			}
		}
	}
	return nil
}

func ident(e ast.Expr) *ast.Ident {
	id, _ := e.(*ast.Ident)
	return id
}

// around returns the innermost loop around a node within its function, and that function; of a node outside of
// functions the root.
func around(c inspector.Cursor) (loop ast.Node, fn inspector.Cursor) {
	for child := c; ; {
		p := child.Parent()
		switch n := p.Node().(type) {
		case nil, *ast.FuncDecl, *ast.FuncLit:
			return loop, p
		case *ast.ForStmt:
			if loop == nil && child.Node() == n.Body {
				loop = n
			}
		case *ast.RangeStmt:
			if loop == nil && child.Node() == n.Body {
				loop = n
			}
		}
		child = p
	}
}

// dependsOn reports whether an expression uses a variable that is declared in the loop.
func dependsOn(info *types.Info, e ast.Expr, loop ast.Node) (yes bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if o := info.Uses[id]; o != nil && loop.Pos() <= o.Pos() && o.Pos() < loop.End() {
				yes = true
			}
		}
		return true
	})
	return
}

// onlyAsked reports whether the limiter is only asked, where it is made: in no loop or function inside.
func onlyAsked(info *types.Info, made inspector.Cursor, v *types.Var) bool {
	loop, fn := around(made)
	asked := false
	for c := range fn.Preorder((*ast.Ident)(nil)) {
		id := c.Node().(*ast.Ident)
		if info.Uses[id] != v {
			continue
		}
		call, ok := c.Parent().Node().(*ast.CallExpr) // a middleware is a func
		if ok && call.Fun == ast.Expr(id) {
			asked = true
			continue
		}
		call, ok = c.Parent().Parent().Node().(*ast.CallExpr)
		if !ok || receiver(call) != ast.Expr(id) {
			return false
		}
		asked = asked || isAsked(info, call)
		if l, f := around(c); l != loop || f != fn {
			return false
		}
	}
	return asked
}

// isAsked reports whether a call asks a limiter, sends a request by a transport or a client, or wraps a handler.
func isAsked(info *types.Info, call *ast.CallExpr) bool {
	switch useOf(info, call).kind {
	case wait, take, hold:
		return true
	}
	fn := callee(info, call)
	return fn != nil && fn.Signature().Recv() != nil && slices.Contains(sends, fn.Name())
}

var sends = []string{"RoundTrip", "Do", "Get", "Head", "Post", "PostForm", "Wrap", "Handler"}

func isHandler(info *types.Info, fn ast.Node) bool {
	sig, name := signature(info, fn), ""
	if fn, ok := fn.(*ast.FuncDecl); ok {
		name = fn.Name.Name
	}
	for _, t := range [][2]string{
		{"github.com/gin-gonic/gin", "Context"},
		{"github.com/labstack/echo/v4", "Context"},
		{"github.com/labstack/echo/v5", "Context"},
		{"github.com/gofiber/fiber/v2", "Ctx"},
		{"github.com/gofiber/fiber/v3", "Ctx"},
		{"google.golang.org/grpc", "UnaryServerInfo"},
		{"google.golang.org/grpc", "StreamServerInfo"},
	} {
		if has(sig.Params(), t[0], t[1]) {
			return true
		}
	}
	return has(sig.Params(), "net/http", "ResponseWriter") && has(sig.Params(), "net/http", "Request") ||
		name == "RoundTrip" && has(sig.Params(), "net/http", "Request") && has(sig.Results(), "net/http", "Response")
}
