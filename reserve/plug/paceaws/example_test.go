package paceaws_test

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/plug/paceaws"
)

// At most 40 attempts a second, retries included, and fewer where the service accepts fewer.
func ExampleNew() {
	standard := retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = 5 })
	limiter := reserve.Must(pace.NewBursty(40, pace.WithBurst(0)))
	retryer, err := paceaws.New(standard, limiter, paceaws.Adaptive())
	if err != nil {
		fmt.Println(err)
		return
	}
	config := aws.Config{Region: "eu-central-1", Retryer: func() aws.Retryer { return retryer }}
	client := dynamodb.NewFromConfig(config)
	fmt.Println(client.Options().Retryer.MaxAttempts())
	// Output: 5
}
