package pacedebug_test

import (
	"log"
	"net/http"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/pacedebug"
)

// A page of a limiter and a transport, at /debug/pace.
func ExampleNew() {
	page := pacedebug.New()
	if err := page.Limiter("billing", pace.Must(pace.NewBursty(50))); err != nil {
		log.Fatal(err)
	}
	if err := page.Transport("github", pace.Must(outbound.New(nil, nil))); err != nil {
		log.Fatal(err)
	}
	http.Handle("/debug/pace", page)
}
