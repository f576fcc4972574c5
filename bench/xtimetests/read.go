package main

import (
	"fmt"
	"regexp"
)

// A test is one that has ended.
type test struct {
	name        string
	passed      bool
	differences []string
}

// differences returns in short how the lines of a test's output say that pace differs.
func differences(output []string) (all []string) {
	for _, line := range output {
		if d := differs(line); d != "" {
			all = append(all, d)
		}
	}
	return all
}

var (
	message  = regexp.MustCompile(`^ +xtime_test\.go:\d+: (.*)\n$`)
	reserveN = regexp.MustCompile(`^lim\.reserveN\((t-?\d+), (\d+), .*\) = \((t-?\d+), (\w+)\) want \((t-?\d+), (\w+)\)$`)
	stepOf   = regexp.MustCompile(`^(step \d+): lim\.(\w+)\(.*\) = (\S+) want (\S+)$`)
)

// differs returns in short how a line of a test's output says that pace differs; nothing, for
// a line that does not.
func differs(line string) string {
	m := message.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	said := m[1]
	if m := reserveN.FindStringSubmatch(said); m != nil && m[4] == m[6] {
		return fmt.Sprintf("%s asked for at %s: %s, not %s", m[2], m[1], m[3], m[5])
	}
	if m := stepOf.FindStringSubmatch(said); m != nil {
		return fmt.Sprintf("%s: %s %s, not %s", m[1], m[2], m[3], m[4])
	}
	return said
}
