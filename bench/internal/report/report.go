// Package report prints what the commands have measured.
package report

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"
)

// Table writes a Markdown table, its columns aligned so that it reads well on a
// terminal too. Columns whose header begins with ">" are aligned to the right.
func Table(w io.Writer, header []string, rows [][]string) {
	right := make([]bool, len(header))
	titles := make([]string, len(header))
	widths := make([]int, len(header))
	for i, h := range header {
		titles[i], right[i] = strings.CutPrefix(h, ">")
		widths[i] = max(3, utf8.RuneCountInString(titles[i]))
	}
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	line := func(row []string) {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if right[i] {
				fmt.Fprintf(w, "| %s%s ", pad, cell)
			} else {
				fmt.Fprintf(w, "| %s%s ", cell, pad)
			}
		}
		fmt.Fprintln(w, "|")
	}
	line(titles)
	for i := range header {
		if right[i] {
			fmt.Fprintf(w, "|%s:", strings.Repeat("-", widths[i]+1))
		} else {
			fmt.Fprintf(w, "|%s", strings.Repeat("-", widths[i]+2))
		}
	}
	fmt.Fprintln(w, "|")
	for _, row := range rows {
		line(row)
	}
}

// Machine says in one line when and on what this runs.
func Machine() string {
	return fmt.Sprintf("%s, %s %s/%s, %s, %d CPUs", time.Now().Format(time.DateOnly),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, processor(), runtime.NumCPU())
}

// processor returns the processor's name, where that is easily known.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
