package allornothing

import "fmt"

// Number names the part at i of n, for parts without a name: "1 of 2".
func Number(i, n int) string { return fmt.Sprintf("%d of %d", i+1, n) }

// IsNumber reports whether a name is a part's number.
func IsNumber(name string) bool {
	var i, n int
	if _, err := fmt.Sscanf(name, "%d of %d", &i, &n); err != nil {
		return false
	}
	return name == Number(i-1, n)
}
