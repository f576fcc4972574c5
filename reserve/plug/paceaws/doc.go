// Package paceaws paces the calls that the AWS SDK for Go v2 makes, retries included: [New]'s is an aws.Config's
// Retryer, for all clients made of that.
//
// The SDK asks its retryer for a token before each attempt. This one waits for a permit then, and leaves everything
// else to the retryer that it is put around. That decides which errors are tried again, how often, and after which
// delay. When a service says that there was too much, it stops all users of the limiter for as long as the service
// says. With [Adaptive] it also finds the rate that the service accepts.
package paceaws
