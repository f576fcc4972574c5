package allornothing

// Parts are the reservers of a reserve.All. Only packages of this module can name the type.
type Parts[R any] []R

// PartsOf returns the reservers of an All, or nil. R is reserve.Reserver.
func PartsOf[R any](r R) []R {
	if a, ok := any(r).(interface{ Parts() Parts[R] }); ok {
		return a.Parts()
	}
	return nil
}
