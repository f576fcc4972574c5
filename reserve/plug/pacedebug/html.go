package pacedebug

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"until": until, "line": line, "most": func(h []int) int { return slices.Max(h) },
}).Parse(pageText))

func writePage(w http.ResponseWriter, rows []Row) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.Header().Set("Refresh", "2")
	_ = pageTemplate.Execute(w, struct { // an error is the client's: it has gone
		Now  time.Time
		Rows []Row
	}{time.Now(), rows})
}

func writeJSON(w http.ResponseWriter, rows []Row) {
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	_ = out.Encode(map[string][]Row{"limits": slices.Concat([]Row{}, rows)})
}

// String returns the number with at most three decimals.
func (n number) String() string {
	if math.IsInf(float64(n), 1) {
		return "no limit"
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", float64(n)), "0"), ".")
}

// until returns how far off a time is, and nothing for one that has passed.
func until(now, t time.Time) string {
	d := t.Sub(now)
	switch {
	case t.IsZero() || d < time.Millisecond:
		return ""
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}

// line returns the points of a row's history, 2 units wide each and 20 high.
func line(h []int) string {
	most := max(1, slices.Max(h))
	points := make([]string, len(h))
	for i, n := range h {
		points[i] = fmt.Sprintf("%d,%.1f", 2*i, 21-20*float64(n)/float64(most))
	}
	return strings.Join(points, " ")
}
