// Package stats is what the exporters of metrics have in common: the numbers that there are, their
// names, and the sources that they come from.
//
// All are pulled when they are read, but for what a transport's hooks count. A source is labelled with a name that the
// program gives it, never with keys.
package stats

import (
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/nextfree/pace/reserve"
)

// A Family is one metric.
type Family struct {
	Prometheus    string   // its name there
	OpenTelemetry string   // and there
	Unit          string   // as OpenTelemetry writes it
	Help          string   // without a full stop
	Counter       bool     // it only grows
	Labels        []string // the first one is the source's name
}

// A Sample is a family's value now.
type Sample struct {
	*Family
	Values []string // of the labels
	Value  float64
}

// A Set is the sources that an exporter shows. Its zero value is ready to use. All methods may be
// called at the same time.
type Set struct {
	Package string // in errors: "paceprom"

	mu      sync.Mutex
	sources []source
}

type source struct {
	kind, name string
	samples    func(yield func(f *Family, value float64, values ...string))
	waits      func() Histogram // of a transport or a middleware
}

// Samples returns all values as they are now, those of a family one after the other.
func (s *Set) Samples() (samples []Sample) {
	for _, from := range s.all() {
		from.samples(func(f *Family, value float64, values ...string) {
			samples = append(samples, Sample{f, append([]string{from.name}, values...), value})
		})
	}
	slices.SortStableFunc(samples, func(a, b Sample) int {
		return slices.Index(Families, a.Family) - slices.Index(Families, b.Family)
	})
	return samples
}

// A Histogram counts waits: how many there were, how long they took together in seconds, and how many were at most as
// long as each bound.
type Histogram struct {
	*Family
	Count uint64
	Sum   float64
	UpTo  map[float64]uint64
}

// Histograms returns those of the sources that have one, by name.
func (s *Set) Histograms(yield func(name string, h Histogram)) {
	for _, from := range s.all() {
		if from.waits != nil {
			yield(from.name, from.waits())
		}
	}
}

func (s *Set) all() []source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sources)
}

// add adds a source. Names are unique among sources of a kind.
func (s *Set) add(from source) error {
	if from.name == "" {
		return s.wrong("the name of "+from.kind, from.name, "one that is not empty")
	}
	if !utf8.ValidString(from.name) { // Prometheus panics when it looks
		return s.wrong("the name of "+from.kind, from.name, "UTF-8")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(other source) bool { return other.kind == from.kind && other.name == from.name }
	if slices.ContainsFunc(s.sources, same) {
		return s.wrong("the name of "+from.kind, from.name, "another for each")
	}
	s.sources = append(s.sources, from)
	return nil
}

func (s *Set) wrong(name string, value any, want string) error {
	return &reserve.ValueError{Package: s.Package, Name: name, Value: value, Want: want}
}
