package apis_test

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/outbound/apis"
)

// guideTable is what the guide says of the APIs, two in a line.
func guideTable() string {
	var b strings.Builder
	b.WriteString("| call | limits | call | limits |\n|---|---|---|---|\n")
	for i, a := range apis.List() {
		fmt.Fprintf(&b, "| [`%s`](%s) | %s ", a.Call, a.Source, a.Says)
		if i%2 == 1 {
			b.WriteString("|\n")
		}
	}
	if len(apis.List())%2 == 1 {
		b.WriteString("| | |\n")
	}
	return b.String()
}

// With GUIDE=write the test writes the table.
func TestGuide(t *testing.T) {
	const file = "../../../guide.md"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), "### Well-known APIs\n")
	require.True(t, ok)
	intro, rest, ok := strings.Cut(rest, "\n| call |")
	require.True(t, ok, "no table")
	_, after, _ := strings.Cut(rest, "\n\n")
	if os.Getenv("GUIDE") == "write" {
		text = []byte(before + "### Well-known APIs\n" + intro + "\n" + guideTable() + "\n" + after)
		require.NoError(t, os.WriteFile(file, text, 0o666))
	}
	require.Contains(t, string(text), "\n"+guideTable(), "GUIDE=write go test -run TestGuide ./reserve/outbound/apis")
}

func TestList(t *testing.T) {
	names := map[string]bool{}
	for _, a := range apis.List() {
		require.False(t, names[a.Name], a.Name)
		names[a.Name] = true
		require.NotEmpty(t, a.Hosts, a.Name)
		require.NotEmpty(t, a.Says, a.Name)
		require.False(t, a.Checked.IsZero(), a.Name)
		require.True(t, strings.HasPrefix(a.Call, "apis."), a.Name)
		at, err := url.Parse(a.Source)
		require.NoError(t, err)
		require.Equal(t, "https", at.Scheme, a.Name)
	}
	require.GreaterOrEqual(t, len(names), 30)
}
