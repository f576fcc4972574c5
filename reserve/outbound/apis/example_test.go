package apis_test

import (
	"net/http"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/outbound/apis"
)

// Limits of the APIs that document one for everybody, by the request's host.
func ExampleKnown() {
	_ = &http.Client{Transport: pace.Must(outbound.New(nil, nil, apis.Known()))}
}

// Zendesk's limit depends on the plan: 400 requests a minute.
func ExampleZendesk() {
	_ = &http.Client{Transport: pace.Must(outbound.New(nil, nil, apis.Zendesk(400)))}
}
