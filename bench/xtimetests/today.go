//go:build !queue

package main

const tags = ""

const gap = "A caller that leaves makes room only for a request that fits."
const owed = "SetRate leaves what is owed as it is, in time; x/time/rate has it paid at the new rate."

var known = map[string]difference{
	"TestLimiterJumpBackwards": {"step 5: TokensAt 0, not 1; step 5: AllowN false, not true", backwards},
	"TestCancelTooLate":        {"2 asked for at t3: t3, not t4", late},
	"TestCancel0Tokens":        {"1 asked for at t0: t1, not t3", gap},
	"TestCancel1Token":         {"2 asked for at t2: t5, not t4", gap},
	"TestCancelMulti":          {"3 asked for at t1: t7, not t5", gap},
	"TestReserveJumpBack": {"1 asked for at t0: t2, not t1; 2 asked for at t2: t4, not t3; " +
		"1 asked for at t2: t5, not t4; 1 asked for at t2: t6, not t5", backwards},
	"TestReserveJumpBackCancel": {"2 asked for at t1: t3, not t4", gap},
	"TestReserveSetLimit":       {"1 asked for at t2: t5, not t4", owed},
	"TestReserveSetBurst":       {"4 asked for at t0: t12, not t9", backwards},
}
