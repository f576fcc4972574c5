package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// A test is one that has ended.
type test struct {
	name        string
	passed      bool
	differences []string
}

// read reads what `go test -json` prints.
func read(output []byte) (tests []test, err error) {
	said := map[string][]string{}
	var build strings.Builder
	for d := json.NewDecoder(bytes.NewReader(output)); ; {
		var e struct{ Action, Test, Output string }
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go test: %w", err)
		}
		switch e.Action {
		case "output":
			if d := differs(e.Output); d != "" {
				said[e.Test] = append(said[e.Test], d)
			}
		case "build-output":
			build.WriteString(e.Output)
		case "pass", "fail", "skip":
			if e.Test != "" {
				tests = append(tests, test{e.Test, e.Action == "pass", said[e.Test]})
			}
		}
	}
	if len(tests) == 0 {
		return nil, fmt.Errorf("no test ran\n%s", &build)
	}
	return tests, nil
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
