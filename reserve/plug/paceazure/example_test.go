package paceazure_test

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/paceazure"
)

// Every client that is given these options sends at most 20 requests a second, and fewer where
// Azure accepts fewer.
func ExampleNew() {
	paced, err := paceazure.New(reserve.Must(pace.NewBursty(20)), outbound.Adaptive())
	if err != nil {
		fmt.Println(err)
		return
	}
	options := policy.ClientOptions{}
	options.PerRetryPolicies = append(options.PerRetryPolicies, paced)
	fmt.Println(len(options.PerRetryPolicies))
	// Output: 1
}
