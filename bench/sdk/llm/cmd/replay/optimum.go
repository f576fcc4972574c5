package main

import "time"

// optimum returns when the last call goes, at best: in their order, each as soon as in the minute
// that ends with it there are no more requests and tokens than the limits, with all sizes known.
func optimum(calls []call, requests, tokens int) time.Duration {
	type went struct {
		at   time.Duration
		size int
	}
	var minute []went // the calls of the last one
	sum, now := 0, time.Duration(0)
	for _, c := range calls {
		now = max(now, c.at)
		size := c.prompt + c.reply
		for len(minute) > 0 {
			full := len(minute)+1 > requests || sum+size > tokens
			if now-minute[0].at < time.Minute && !full {
				break
			}
			now = max(now, minute[0].at+time.Minute)
			sum -= minute[0].size
			minute = minute[1:]
		}
		minute = append(minute, went{now, size})
		sum += size
	}
	return now
}
