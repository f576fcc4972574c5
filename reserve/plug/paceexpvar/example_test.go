package paceexpvar_test

import (
	"encoding/json"
	"expvar"
	"fmt"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/plug/paceexpvar"
)

// Every HTTP server with http.DefaultServeMux shows it on /debug/vars.
func Example() {
	limiter := reserve.Must(pace.NewBursty(10))
	metrics := paceexpvar.New()
	if err := metrics.Limiter("billing", limiter); err != nil {
		fmt.Println(err)
		return
	}
	expvar.Publish("pace", metrics)

	limiter.Allow()
	var all map[string]any
	_ = json.Unmarshal([]byte(expvar.Get("pace").String()), &all)
	fmt.Println(all[`pace_limiter_granted_permits_total{limiter="billing"}`])
	// Output: 1
}
