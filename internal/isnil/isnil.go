// Package isnil finds what is nil although an interface holds it.
package isnil

import "reflect"

// Value reports whether v is nil, or holds a nil pointer, function, map or channel.
func Value(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan:
		return r.IsNil()
	default:
		return false
	}
}
