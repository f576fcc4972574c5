package pacevet

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/types/typeutil"
)

// RetryWait names waits for one permit before a loop that makes several attempts.
var RetryWait = &analysis.Analyzer{
	Name: "retrywait",
	Doc: `retrywait: one Wait before a loop of attempts

	if err := lim.Wait(ctx); err != nil {
		return err
	}
	for range 3 {
		resp, err := client.Do(req)
		if err == nil {
			return use(resp)
		}
	}

Each attempt counts at the server, but only the first one has a permit. When the server is overloaded all
callers retry at once, and the limiter does not see it. Wait in the loop, or let the client's transport do it
(pace's outbound).

It names a wait for one permit, and after it in the same block a loop that is left when an HTTP request or a
gRPC call has succeeded and in which nothing asks a limiter; or a retry library's call with such a function
(cenkalti/backoff, avast/retry-go, sethvargo/go-retry, client-go's retry, apimachinery's wait). It leaves
alone: loops over data; loops that end with an error, such as reading a stream; attempts by a function of the
same package that asks a limiter; a wait for more permits; tests. Where the wait stands right before the loop
it offers to move it.`,
	URL:      "https://pkg.go.dev/github.com/nextfree/pace/reserve/plug/pacevet#RetryWait",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      retryWait,
}

// libraries call a function until it succeeds.
var libraries = []string{
	"github.com/cenkalti/backoff", "github.com/avast/retry-go", "github.com/sethvargo/go-retry",
	"k8s.io/client-go/util/retry", "k8s.io/apimachinery/pkg/util/wait",
}

func retryWait(pass *analysis.Pass) (any, error) {
	r := retries{pass, map[types.Object]bool{}}
	for c := range root(pass).Preorder((*ast.FuncDecl)(nil)) {
		if f := c.Node().(*ast.FuncDecl); f.Body != nil && r.paces(f.Body) {
			r.paced[pass.TypesInfo.ObjectOf(f.Name)] = true
		}
	}
	for c := range root(pass).Preorder((*ast.BlockStmt)(nil)) {
		if !inTest(pass, c.Node()) {
			r.block(c.Node().(*ast.BlockStmt).List)
		}
	}
	return nil, nil
}

type retries struct {
	pass  *analysis.Pass
	paced map[types.Object]bool // functions of this package that ask a limiter
}

// block looks through a list of statements.
func (r *retries) block(list []ast.Stmt) {
	waits := -1 // where the wait is that nothing has used yet
	for i, s := range list {
		switch {
		case r.isWait(s) != nil:
			waits = i
		case waits < 0:
		case r.retries(s):
			call := r.isWait(list[waits])
			r.pass.Report(analysis.Diagnostic{
				Pos: call.Pos(), End: call.End(),
				Message:        "Wait before a loop of attempts: all but the first go without a permit",
				SuggestedFixes: r.move(list[waits:i], s),
			})
			waits = -1
		case r.requests(s):
			waits = -1
		}
	}
}

// isWait returns the call by which a statement waits for one permit.
func (r *retries) isWait(s ast.Stmt) *ast.CallExpr {
	var e ast.Expr
	switch s := s.(type) {
	case *ast.ExprStmt:
		e = s.X
	case *ast.AssignStmt:
		if len(s.Rhs) == 1 {
			e = s.Rhs[0]
		}
	case *ast.IfStmt:
		if a, ok := s.Init.(*ast.AssignStmt); ok && len(a.Rhs) == 1 {
			e = a.Rhs[0]
		}
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return nil
	}
	if u := useOf(r.pass.TypesInfo, call); u.kind == wait && u.isOne(r.pass.TypesInfo) {
		return call
	}
	return nil
}

// retries reports whether a statement makes a request until it succeeds, without a limiter.
func (r *retries) retries(s ast.Stmt) bool {
	var loop *ast.BlockStmt
	switch s := s.(type) {
	case *ast.ForStmt:
		loop = s.Body
	case *ast.RangeStmt:
		t, ok := r.pass.TypesInfo.TypeOf(s.X).Underlying().(*types.Basic)
		if !ok || t.Info()&types.IsInteger == 0 {
			return false
		}
		loop = s.Body
	default:
		return r.library(s)
	}
	return r.requests(loop) && !r.paces(loop) && r.untilSuccess(loop)
}

// library reports whether a statement has a library retry a request.
func (r *retries) library(s ast.Stmt) bool {
	for _, call := range calls(s) {
		fn, _ := typeutil.Callee(r.pass.TypesInfo, call).(*types.Func)
		if fn == nil || fn.Pkg() == nil {
			continue
		}
		for _, path := range libraries {
			if p := fn.Pkg().Path(); p != path && !strings.HasPrefix(p, path+"/") {
				continue
			}
			for _, a := range call.Args {
				if lit, ok := ast.Unparen(a).(*ast.FuncLit); ok && r.requests(lit.Body) && !r.paces(lit.Body) {
					return true
				}
			}
		}
	}
	return false
}

// paces reports whether anything in a tree asks a limiter.
func (r *retries) paces(n ast.Node) bool {
	for _, call := range calls(n) {
		switch useOf(r.pass.TypesInfo, call).kind {
		case wait, take, hold:
			return true
		}
		if fn := typeutil.Callee(r.pass.TypesInfo, call); fn != nil && r.paced[fn] {
			return true
		}
	}
	return false
}

// requests reports whether anything in a tree makes an HTTP request or a gRPC call.
func (r *retries) requests(n ast.Node) bool {
	for _, call := range calls(n) {
		if isFunc(r.pass.TypesInfo, call, "net/http", "Do", "Get", "Head", "Post", "PostForm") {
			// The functions, and a Client's methods: not Header's Get.
			if x := receiver(call); !isNamed(r.pass.TypesInfo.TypeOf(x), "net/http", "Header") {
				return true
			}
		}
		sig, _ := r.pass.TypesInfo.TypeOf(call.Fun).(*types.Signature)
		if sig == nil {
			continue
		}
		if has(sig.Params(), "net/http", "Request") && has(sig.Results(), "net/http", "Response") {
			return true
		}
		if n := sig.Params().Len(); sig.Variadic() && n > 0 {
			s, ok := sig.Params().At(n - 1).Type().(*types.Slice)
			if ok && isNamed(s.Elem(), "google.golang.org/grpc", "CallOption") {
				return true
			}
		}
	}
	return false
}

// untilSuccess reports whether a loop is left when there is no error, or goes on when there is one.
func (r *retries) untilSuccess(loop *ast.BlockStmt) (yes bool) {
	ast.Inspect(loop, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.ForStmt, *ast.RangeStmt: // its breaks and returns are others'
			return false
		case *ast.IfStmt:
			asks, failed := r.asks(n.Cond)
			switch last := last(n.Body).(type) {
			case *ast.BranchStmt:
				yes = yes || asks && (last.Tok == token.CONTINUE && failed || last.Tok == token.BREAK && !failed)
			case *ast.ReturnStmt:
				yes = yes || asks && !failed
			}
		}
		return true
	})
	return
}

// asks reports whether a condition is about an error, and whether it is that there is one: err != nil.
func (r *retries) asks(cond ast.Expr) (asks, failed bool) {
	ast.Inspect(cond, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.NEQ && r.isErr(n.X) {
				failed = true
			}
		case *ast.Ident:
			asks = asks || r.isErr(n)
		}
		return true
	})
	return
}

func (r *retries) isErr(e ast.Expr) bool {
	v := variable(r.pass.TypesInfo, e)
	return v != nil && isError(v.Type())
}

func last(b *ast.BlockStmt) ast.Stmt {
	if len(b.List) == 0 {
		return nil
	}
	return b.List[len(b.List)-1]
}

// move offers to move a wait into the loop behind it, where that changes nothing else. The wait is a statement by
// itself, there is nothing in between, and the loop declares none of its names.
func (r *retries) move(before []ast.Stmt, s ast.Stmt) []analysis.SuggestedFix {
	var loop *ast.BlockStmt
	switch s := s.(type) {
	case *ast.ForStmt:
		loop = s.Body
	case *ast.RangeStmt:
		loop = s.Body
	}
	stmt := before[0]
	if _, declares := stmt.(*ast.AssignStmt); declares || len(before) != 1 || loop == nil || dependsOnNames(stmt, s) {
		return nil
	}
	from := r.pass.Fset.File(stmt.Pos())
	content, err := r.pass.ReadFile(from.Name())
	if err != nil {
		return nil
	}
	text := string(content[from.Offset(stmt.Pos()):from.Offset(stmt.End())])
	return []analysis.SuggestedFix{{Message: "Wait before each attempt", TextEdits: []analysis.TextEdit{
		{Pos: stmt.Pos(), End: s.Pos()},
		{Pos: loop.Lbrace + 1, End: loop.Lbrace + 1, NewText: []byte("\n" + text)},
	}}}
}

// dependsOnNames reports whether a loop's header declares a name that the statement uses.
func dependsOnNames(stmt, loop ast.Stmt) (yes bool) {
	names := map[string]bool{}
	add := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok {
			names[id.Name] = true
		}
	}
	switch l := loop.(type) {
	case *ast.ForStmt:
		if a, ok := l.Init.(*ast.AssignStmt); ok {
			for _, e := range a.Lhs {
				add(e)
			}
		}
	case *ast.RangeStmt:
		add(l.Key)
		add(l.Value)
	}
	ast.Inspect(stmt, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && names[id.Name] {
			yes = true
		}
		return true
	})
	return
}
