package engine

// Parts are the reservers of a reserve.All: what its method Parts returns. Only packages of this module can name the
// type, so nothing else is taken for an All.
type Parts[R any] []R

// PartsOf returns the reservers of an All, and nil for any other reserver. R is reserve.Reserver.
func PartsOf[R any](r R) []R {
	if a, ok := any(r).(interface{ Parts() Parts[R] }); ok {
		return a.Parts()
	}
	return nil
}
