package main

// A difference is how a test's result differs, as read tells it, and why.
type difference struct{ how, why string }

const (
	backwards = "Pace's clock never runs back: a time before the latest counts as the latest, and brings no permits twice."
	late      = "A Cancel after the permits' time gives back what would still be there; in x/time/rate it does nothing."
	closesUp  = "Those behind a caller that leaves move up, and so does the next one."
)

var known = map[string]difference{
	"TestLimiterJumpBackwards": {"step 5: TokensAt 0, not 1; step 5: AllowN false, not true", backwards},
	"TestCancelTooLate":        {"2 asked for at t3: t3, not t4", late},
	"TestCancel0Tokens":        {"1 asked for at t0: t2, not t3", closesUp},
	"TestCancel1Token":         {"2 asked for at t2: t3, not t4", closesUp},
	"TestCancelMulti":          {"3 asked for at t1: t4, not t5", closesUp},
	"TestReserveJumpBack": {"1 asked for at t0: t2, not t1; 2 asked for at t2: t4, not t3; " +
		"1 asked for at t2: t5, not t4; 1 asked for at t2: t6, not t5", backwards},
	"TestReserveSetBurst": {"4 asked for at t0: t12, not t9", backwards},
}
