package paceprom_test

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/paceprom"
)

// A limiter, and the calls that it paces.
func Example() {
	limiter := reserve.Must(pace.NewBursty(10))
	metrics := paceprom.NewCollector()
	if err := metrics.Limiter("github", limiter); err != nil {
		fmt.Println(err)
		return
	}
	hooks, err := metrics.Outbound("github", outbound.Hooks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: reserve.Must(outbound.New(nil, limiter, outbound.WithHooks(hooks)))}
	_ = client

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	limiter.Allow()
	families, _ := registry.Gather()
	for _, f := range families {
		if f.GetName() == "pace_limiter_granted_permits_total" {
			fmt.Println(f.GetName(), f.Metric[0].Counter.GetValue())
		}
	}
	// Output: pace_limiter_granted_permits_total 1
}
