// Package calendar limits to a quota that begins anew by the clock: "10,000 a day, reset at midnight in California".
//
//	california, err := time.LoadLocation("America/Los_Angeles")
//	...
//	limiter, err := calendar.New(10_000, calendar.Daily(california, 0))
//
// A token bucket of 10,000 a day grants up to 19,999 in its first day, and a window of 24 hours counts a day from each
// call.
//
// # What is promised
//
// First come, first served. A request is granted as soon as the rest of the period's quota holds all of its permits,
// otherwise whole at the beginning of a later period. With 3 an hour, at 10:50:
//
//	Reserve(2)   ready now
//	Reserve(2)   at 11:00
//	Reserve(1)   at 11:00 as well: requests are granted in order
//	Reserve(1)   at 12:00
//
// A request larger than the quota is granted when nothing of a period is used, and takes the quotas of as many periods
// as it needs: Reserve(7) instead of those four is granted at once, and the next request at 12:00.
//
// Waiting requests use at once the permits that are given back in their period. After its end these are worth nothing.
// A period of [FromFirst] closes again if all of its permits come back.
//
// A server may count a call that is out when a period begins in either period. Under package outbound both count it. A
// period of [FromFirst] then lasts until its length after the first answer to a call that was granted in it, and grants
// nothing later than its length after its first grant: in between the server's next period may have begun.
//
// # Days
//
// The wall clock is read at each request. A day on which the clocks are changed has 23 or 25 hours, and one quota.
//
// If the wall clock is set back into an earlier period, the present period goes on until its own end. If it is set
// forward, or a laptop wakes up, the period that it shows begins.
//
// # Restarts
//
// A new limiter starts with nothing used, so a program that is restarted at noon may use its daily quota twice. Save
// the count ([reserve.Limiter.AppendBinary], [reserve.Policy.Restore]), or keep the limiter in a file or a database
// (package shared).
//
// # Changes
//
// A pause grants nothing until its end, and the periods go on. SetRate changes the quota: the rate is that of a
// period's usual length (24 h, 7 days, 30.436875 days). Waiting requests are granted no later than they were promised,
// except after a pause, a call that is out or a server's word; with Retime they wait as the new quota says. SetPolicy
// may change the period too, and keeps what is used of the present period.
package calendar
