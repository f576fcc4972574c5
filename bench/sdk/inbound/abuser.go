package main

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/nextfree/pace/bench/internal/report"
)

// measureAbuser asks all contenders two questions, with the global limit first and with the clients' limit first.
//
// There are 20 requests a minute for all, and 2 for each client. One client sends 100; then nine others send 2 each.
// How many are served?
//
// There are 20 requests a second for all, and 2 a minute for each client. Ten clients use up the limit for all, so
// that one more client is refused ten times. Two seconds later there is room. Does that client get its 2, or has it
// paid for its refusals?
func measureAbuser(out io.Writer) error {
	fmt.Fprint(out, "## One abuser: global 20, 2 for each client\n\n"+
		"The abuser sends 100, then nine others send 2 each. Late is a client who is refused ten times by the\n"+
		"global limit, and comes back for its own 2 when that has room.\n\n")
	var rows [][]string
	for _, c := range contenders {
		if c.name == bare || c.name == withoutHeaders {
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
		rows = append(rows, []string{c.name, fmt.Sprint(abuser), fmt.Sprint(first), fmt.Sprint(last), fmt.Sprint(lateFirst),
			fmt.Sprint(lateLast), verdict})
	}
	report.Table(out, []string{"", ">abuser served of 100", ">others served of 18, global first",
		">others served of 18, client first", ">late served of 2, global first", ">late served of 2, client first",
		"refusals charge nobody"}, rows)
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

// comeBack asks the second question. It begins anew if the machine was so slow that the limit for all had room again
// before the late client was refused.
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
	return 0, fmt.Errorf("%s: the limit for all is never used up", c.name)
}
