package pacevet

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// ErrorText names comparisons of errors by their text.
var ErrorText = analyzer("ErrorText", `a limiter's error is recognized by its text

	if strings.Contains(err.Error(), "would exceed context deadline") {

pace's texts differ. Its errors, and those of reserve/plug/xtime/rate, are context.DeadlineExceeded where a deadline
is the reason, and have types:

	if errors.Is(err, context.DeadlineExceeded) {

	if late, ok := errors.AsType[*pace.WaitError](err); ok { // late.Wait says for how long

golang.org/x/time/rate's are neither; there the text is the only way until the import path is changed.

It names comparisons (==, !=, switch) and strings.Contains, HasPrefix, HasSuffix and EqualFold of err.Error(), if
the text is one of x/time/rate's, or if err comes from a limiter only.`, errorText)

var texts = []string{"would exceed context deadline", "exceeds limiter's burst", "rate: Wait(n="}

func errorText(pass *analysis.Pass) {
	info := pass.TypesInfo
	for c := range root(pass).Preorder(
		(*ast.BinaryExpr)(nil), (*ast.CallExpr)(nil), (*ast.SwitchStmt)(nil),
	) {
		for _, p := range comparisons(info, c.Node()) {
			err := textOf(info, p[0])
			if err == nil {
				continue
			}
			text := ""
			if v := info.Types[p[1]].Value; v != nil && v.Kind() == constant.String {
				text = constant.StringVal(v)
			}
			around, _ := enclosing(c)
			path := source(info, around, err)
			if path == "" && !isTheirs(text) {
				continue
			}
			message := "a limiter's error is recognized by its text: use errors.Is with context.DeadlineExceeded, or errors.As"
			if path == xtime {
				message = "a limiter's error is recognized by its text, for golang.org/x/time/rate's has no type: " +
					"that of reserve/plug/xtime/rate is context.DeadlineExceeded"
			}
			pass.ReportRangef(c.Node(), "%s", message)
			break
		}
	}
}

// comparisons returns the pairs of expressions that a node compares as texts, the possible error first.
func comparisons(info *types.Info, node ast.Node) (pairs [][2]ast.Expr) {
	switch n := node.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			return [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}}
		}
	case *ast.CallExpr:
		if len(n.Args) == 2 && isFunc(info, n, "strings", "Contains", "HasPrefix", "HasSuffix", "EqualFold") {
			return [][2]ast.Expr{{n.Args[0], n.Args[1]}}
		}
	case *ast.SwitchStmt:
		if n.Tag == nil {
			return nil
		}
		for _, s := range n.Body.List {
			for _, e := range s.(*ast.CaseClause).List {
				pairs = append(pairs, [2]ast.Expr{n.Tag, e})
			}
		}
	}
	return pairs
}

// textOf returns the error whose Error is called.
func textOf(info *types.Info, e ast.Expr) ast.Expr {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) != 0 {
		return nil
	}
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && sel.Sel.Name == "Error" {
		if t := info.TypeOf(sel.X); t != nil && isError(t) {
			return sel.X
		}
	}
	return nil
}

func isTheirs(text string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(text, t) })
}

// source returns the path of the limiter's package that alone sets the error's variable, or "".
func source(info *types.Info, around ast.Node, err ast.Expr) (path string) {
	v := variable(info, err)
	if v == nil || around == nil {
		return ""
	}
	others := v.Pos() < around.Pos() || v.Pos() > around.End() // a parameter, or set elsewhere
	values(info, around, func(o types.Object, value ast.Expr) {
		if o != v {
			return
		}
		u := use{}
		if call, ok := ast.Unparen(value).(*ast.CallExpr); ok {
			u = useOf(info, call)
		}
		if u.kind == wait || u.kind == hold {
			path = u.path()
		} else {
			others = true
		}
	})
	ast.Inspect(around, func(n ast.Node) bool {
		if a, ok := n.(*ast.UnaryExpr); ok && a.Op == token.AND && variable(info, a.X) == v {
			others = true
		}
		return true
	})
	if others {
		return ""
	}
	return path
}
