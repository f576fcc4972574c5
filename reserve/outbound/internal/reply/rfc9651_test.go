package reply

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The cases of list.json and param-list.json of github.com/httpwg/structured-field-tests,
// with the parameters that are read here: how many items, and what q says of the last.
func TestListsAsRFC9651(t *testing.T) {
	const malformed = -1
	for _, c := range []struct {
		name  string
		lines []string
		items int
		q     any // an integer, or nil
	}{
		{"basic", []string{"1, 42"}, 2, nil},
		{"empty", []string{""}, 0, nil},
		{"single item", []string{"42"}, 1, nil},
		{"no whitespace", []string{"1,42"}, 2, nil},
		{"extra whitespace", []string{"1 , 42"}, 2, nil},
		{"tab", []string{"1\t,\t42"}, 2, nil},
		{"two lines", []string{"1", "42"}, 2, nil},
		{"trailing comma", []string{"1, 42,"}, malformed, nil},
		{"empty item", []string{"1,,42"}, malformed, nil},
		{"empty item over lines", []string{"1", "", "42"}, malformed, nil},
		{"parameters", []string{`abc_123;a=1;b=2; cdef_456, ghi;q=9;r="+w"`}, 2, int64(9)},
		{"decimal parameter", []string{"text/html;q=1.0"}, 1, nil},
		{"missing value", []string{"text/html;a;q=1"}, 1, int64(1)},
		{"missing terminal value", []string{"text/html;q=1;a"}, 1, int64(1)},
		{"a key again: the last counts", []string{"text/html;q=1;q=2"}, 1, int64(2)},
		{"no whitespace, parameters", []string{"text/html,text/plain;q=5"}, 2, int64(5)},
		{"whitespace before =", []string{"text/html, text/plain;q =5"}, malformed, nil},
		{"whitespace after =", []string{"text/html, text/plain;q= 5"}, malformed, nil},
		{"whitespace before ;", []string{"text/html, text/plain ;q=5"}, malformed, nil},
		{"whitespace after ;", []string{"text/html, text/plain; q=5"}, 2, int64(5)},
		{"extra whitespace, parameters", []string{"text/html  ,  text/plain;  q=5;  charset=utf-8"}, 2, int64(5)},
		{"two lines, parameters", []string{"text/html", "text/plain;q=5"}, 2, int64(5)},
		{"trailing comma, parameters", []string{"text/html,text/plain;q=5,"}, malformed, nil},
		{"upper-case key", []string{"text/html;Q=5"}, malformed, nil},
		{"15 digits", []string{"a;q=999999999999999"}, 1, int64(999999999999999)},
		{"16 digits", []string{"a;q=9999999999999999"}, malformed, nil},
		{"negative", []string{"a;q=-5"}, 1, nil},
		{"a plus sign", []string{"a;q=+5"}, malformed, nil},
		{"an inner list is no item", []string{`("a" "b");q=5, c;q=6`}, 1, int64(6)},
		{"a control character", []string{"\"a\x00\";q=5"}, malformed, nil},
		{"not ASCII", []string{"\"ä\";q=5"}, malformed, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := items(c.lines)
			if c.items == malformed {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, c.items)
			if c.items == 0 {
				return
			}
			q, ok := integer(got[len(got)-1].Params, "q")
			require.Equal(t, c.q != nil, ok)
			if ok {
				require.Equal(t, c.q, q)
			}
		})
	}
}
