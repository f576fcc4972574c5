package main

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// measureAbuser runs the same tests for all.
//
// The first, in both orders of the tiers: 20 a minute for everybody and 2 for each client. One sends
// 100; then nine others send 2 each.
//
// The second, since who puts the clients' limit first has the opposite fault: 20 a
// second for everybody and 2 a minute for each client. Ten others use up everybody's, so
// that one more client is refused ten times. Two seconds later there is room: does it get its
// 2, or has it paid for its refusals?
func measureAbuser(out io.Writer) error {
	fmt.Fprintln(out, "## One abuser: global 20, 2 for each client")
	fmt.Fprintln(out)
	fmt.Fprintln(out, "The abuser sends 100, then nine others send 2 each. Late is a client who is refused ten times by the")
	fmt.Fprintln(out, "global limit, and comes back for its own 2 when that has room.")
	fmt.Fprintln(out)
	fmt.Fprintln(out, "| | abuser served of 100 | others served of 18, global first | others served of 18, client first | late served of 2, global first | late served of 2, client first | refusals charge nobody |\n|---|---|---|---|---|---|---|")
	for _, c := range contenders {
		if c.name == "bare handler" || c.name == "pace inbound, no headers" {
			continue
		}
		global, client := tier{"global", 20, time.Minute, false}, tier{"client", 2, time.Minute, true}
		abuser, first, err := abuse(c, []tier{global, client})
		if err != nil {
			return err
		}
		_, last, err := abuse(c, []tier{client, global})
		if err != nil {
			return err
		}
		global.per = time.Second
		lateFirst, err := comeBack(c, []tier{global, client})
		if err != nil {
			return err
		}
		lateLast, err := comeBack(c, []tier{client, global})
		if err != nil {
			return err
		}
		verdict := "no"
		if first == 18 && last == 18 && lateFirst == 2 && lateLast == 2 {
			verdict = "yes"
		}
		fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %d | %s |\n", c.name, abuser, first, last, lateFirst, lateLast, verdict)
	}
	fmt.Fprintln(out)
	return nil
}

// served sends n requests of a client and returns how many were served.
func served(h http.Handler, client, n int) (passed int) {
	for range n {
		w := &recorder{header: http.Header{}}
		r, err := http.NewRequest("GET", "http://localhost/", nil)
		if err != nil {
			panic(err) // the URL is constant
		}
		r.RemoteAddr = address(client)
		h.ServeHTTP(w, r)
		if w.status == http.StatusOK {
			passed++
		}
	}
	return passed
}

func abuse(c contender, tiers []tier) (abuser, others int, err error) {
	wrap, err := c.build(tiers)
	if err != nil {
		return 0, 0, err
	}
	h := wrap(hello)
	abuser = served(h, 0, 100)
	for i := range 9 {
		others += served(h, 1+i, 2)
	}
	return abuser, others, nil
}

// comeBack is the second test. It begins anew if the machine was so slow that
// everybody's limit had room again before the late client was refused.
func comeBack(c contender, tiers []tier) (late int, err error) {
	const lateClient, tries = 1, 20
	for range tries {
		wrap, err := c.build(tiers)
		if err != nil {
			return 0, err
		}
		h := wrap(hello)
		others := 0
		for i := range 10 {
			others += served(h, 100+i, 2)
		}
		if others != 20 || served(h, lateClient, 10) > 0 {
			continue
		}
		time.Sleep(2100 * time.Millisecond) // a window of 1 s that slides over two is empty then
		return served(h, lateClient, 2), nil
	}
	return 0, fmt.Errorf("%s: everybody's limit is never used up", c.name)
}
