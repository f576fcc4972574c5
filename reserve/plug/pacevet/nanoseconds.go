package pacevet

import (
	"go/ast"
	"go/constant"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Nanoseconds names durations without a unit.
var Nanoseconds = analyzer("Nanoseconds", `a duration without a unit

An integer constant is nanoseconds where a time.Duration is wanted: window.New(100, 60) allows 100 calls in 60 ns.
Write the unit:

	window.New(100, 60*time.Second)
	fair.Class{Name: "batch", MaxAge: 30 * time.Second}

A conversion has no unit either: time.Duration(seconds) is as many nanoseconds. Write

	window.New(100, time.Duration(seconds)*time.Second)

It names a constant below a millisecond that is made of plain numbers, and a bare conversion of an integer, as an
argument of a function of pace or in one of its structs. It leaves alone: 0, constants of type time.Duration, numbers
from a million on, and conversions of what is named for nanoseconds (timeoutNs, nanos).`, nanoseconds)

func nanoseconds(pass *analysis.Pass) {
	check := func(wanted types.Type, e ast.Expr) {
		switch {
		case !isNamed(wanted, "time", "Duration"):
		case isUnitless(pass.TypesInfo, e):
			value := pass.TypesInfo.Types[e].Value
			pass.ReportRangef(e, "%s without a unit is %[1]s ns: multiply it by time.Second, or by another unit", value)
		case isConverted(pass.TypesInfo, e):
			pass.ReportRangef(e, "a converted number is nanoseconds: multiply it by time.Second, or by another unit")
		}
	}
	for c := range root(pass).Preorder((*ast.CallExpr)(nil), (*ast.CompositeLit)(nil)) {
		switch n := c.Node().(type) {
		case *ast.CallExpr:
			checkArguments(pass.TypesInfo, n, check)
		case *ast.CompositeLit:
			checkFields(pass.TypesInfo, n, check)
		}
	}
}

func checkArguments(info *types.Info, call *ast.CallExpr, check func(types.Type, ast.Expr)) {
	fn := callee(info, call)
	if fn == nil || !isPace(fn.Pkg()) {
		return
	}
	params := fn.Signature().Params()
	for i, arg := range call.Args {
		if i < params.Len() {
			check(params.At(i).Type(), arg)
		}
	}
}

func checkFields(info *types.Info, lit *ast.CompositeLit, check func(types.Type, ast.Expr)) {
	named, _ := types.Unalias(info.TypeOf(lit)).(*types.Named)
	if named == nil || !isPace(named.Obj().Pkg()) {
		return
	}
	fields, ok := named.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, element := range lit.Elts {
		if kv, ok := element.(*ast.KeyValueExpr); ok {
			if field, ok := kv.Key.(*ast.Ident); ok {
				check(info.ObjectOf(field).Type(), kv.Value)
			}
		} else {
			check(fields.Field(i).Type(), element)
		}
	}
}

// isUnitless reports whether e is a constant between 0 and a million that names no constant of type time.Duration.
func isUnitless(info *types.Info, e ast.Expr) bool {
	v := constant.ToInt(valueOf(info, e))
	if v.Kind() != constant.Int || constant.Sign(v) == 0 {
		return false
	}
	if ns, exact := constant.Int64Val(v); !exact || ns >= 1e6 || ns <= -1e6 {
		return false
	}
	unit := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if ok {
			c, isConst := info.ObjectOf(id).(*types.Const)
			unit = unit || isConst && isNamed(c.Type(), "time", "Duration")
		}
		return true
	})
	return !unit
}

// isConverted reports whether e is time.Duration(n), n being an integer variable that is not named for nanoseconds.
func isConverted(info *types.Info, e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) != 1 || !info.Types[call.Fun].IsType() || info.Types[e].Value != nil {
		return false
	}
	name := nameOf(call.Args[0])
	t, ok := types.Unalias(info.TypeOf(call.Args[0])).(*types.Basic)
	return ok && t.Info()&types.IsInteger != 0 && name != "" &&
		!strings.HasSuffix(name, "ns") && !strings.Contains(name, "nano")
}

// nameOf returns the name of a variable, a field or a called function in lower case, or "".
func nameOf(e ast.Expr) string {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return strings.ToLower(e.Name)
	case *ast.SelectorExpr:
		return strings.ToLower(e.Sel.Name)
	case *ast.CallExpr:
		return nameOf(e.Fun)
	case *ast.StarExpr:
		return nameOf(e.X)
	}
	return ""
}

func valueOf(info *types.Info, e ast.Expr) constant.Value {
	if v := info.Types[e].Value; v != nil {
		return v
	}
	return constant.MakeUnknown()
}
