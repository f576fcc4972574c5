package pacek8s_test

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/plug/pacek8s"
)

// All clients that are made of this config share 20 requests a second, and 30 at once after an idle
// time.
func ExampleNewRateLimiter() {
	config := &rest.Config{Host: "https://kubernetes.default.svc"}
	limiter, err := pacek8s.NewRateLimiter(reserve.Must(pace.NewTokenBucket(20, 30)))
	if err != nil {
		fmt.Println(err)
		return
	}
	config.RateLimiter = limiter
	fmt.Println(config.RateLimiter.QPS())
	// Output: 20
}

// Ten items a second are tried again, each of them once in 5 s, and ever more seldom while it
// fails.
func ExampleNewQueueLimiter() {
	onceInFive := reserve.Must(pace.Bursty(reserve.Per(1, 5*time.Second)))
	perItem := keyed.New(func(string) (*reserve.Policy, error) { return onceInFive, nil })
	paced, err := pacek8s.NewQueueLimiter(reserve.Must(pace.NewBursty(10)), perItem.For)
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 1000*time.Second),
		paced,
	))
	defer queue.ShutDown()
	queue.AddRateLimited("default/web")
	item, _ := queue.Get()
	fmt.Println(item, queue.NumRequeues(item))
	queue.Forget(item)
	queue.Done(item)
	// Output: default/web 1
}
