package main

// A difference is how a test's result differs, as read tells it, and why.
type difference struct{ how, why string }

const (
	backwards = "Pace's clock never runs back: a time before the latest counts as the latest, and brings no permits twice."
	late      = "A Cancel after the permits' time gives back what would still be there; in x/time/rate it does nothing."
	closesUp  = "Those behind a caller that leaves move up, and so does the next one."
)
