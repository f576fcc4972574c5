// Command aws calls a local server with the AWS SDK's dynamodb client, with the SDK's own retryers
// and with pace's, and prints as a Markdown table how many attempts the server saw.
//
// The server refuses every third attempt with ProvisionedThroughputExceededException, so that a
// good part of the attempts are retries. The exit status is 1 if the server ever saw more attempts,
// since the first one, than pace's rate allows.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/bench/internal/demo"
	"github.com/nextfree/pace/bench/internal/report"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/plug/paceaws"
)

// A server notes when attempts came.
type server struct {
	mu      sync.Mutex
	came    []time.Time
	refused int
}

func (s *server) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came = append(s.came, time.Now())
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if len(s.came)%3 == 0 {
		s.refused++
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",`+
			`"message":"too much"}`)
		return
	}
	fmt.Fprint(w, `{"TableNames":[]}`)
}

// over returns by how many attempts the server saw more than the rate allows, at worst, beside the
// first one. Delays on the way make attempts later, never earlier; the time of the first one
// is when the client began.
func (s *server) over(begin time.Time, rate float64) (worst float64) {
	for i, at := range s.came {
		worst = max(worst, float64(i)-rate*at.Sub(begin).Seconds())
	}
	return worst
}

const (
	rate    = 50. // attempts a second
	calls   = 200
	callers = 64
)

func main() {
	ok := true
	var rows [][]string
	for _, c := range []struct {
		name    string
		retryer aws.Retryer
		paced   bool
	}{
		{"retry.NewStandard", retry.NewStandard(), false},
		{"retry.NewAdaptiveMode", retry.NewAdaptiveMode(), false},
		{"paceaws.New", reserve.Must(paceaws.New(nil, reserve.Must(pace.NewBursty(rate, pace.WithBurst(0))))), true},
	} {
		s, o, began := run(c.name, c.retryer, calls, callers)
		over := s.over(began, rate)
		rows = append(rows, []string{
			c.name, fmt.Sprint(len(s.came)), fmt.Sprint(s.refused), fmt.Sprint(calls - o.Answered),
			fmt.Sprintf("%.2f s", o.Took.Seconds()), fmt.Sprintf("%.1f", float64(len(s.came)-1)/o.Took.Seconds()),
			fmt.Sprintf("%.2f", over),
		})
		if c.paced && over > 1e-6 {
			ok = false
		}
	}
	fmt.Printf("%d calls of dynamodb's ListTables by %d goroutines; pace's rate is %g/s.\n\n", calls, callers, rate)
	report.Table(os.Stdout, []string{
		"retryer", "attempts", "refused", "calls that failed", "time", "attempts/s", "at worst above the rate by",
	}, rows)
	if !ok {
		os.Exit(1)
	}
}

// longest is how long the calls of one retryer may take. A call that is not done then has failed.
const longest = 20 * time.Second

// run makes the calls.
func run(name string, r aws.Retryer, calls, callers int) (s *server, o demo.Outcome, began time.Time) {
	s = new(server)
	local := httptest.NewServer(s)
	defer local.Close()
	client := dynamodb.New(dynamodb.Options{
		Region: "local", Retryer: r, BaseEndpoint: aws.String(local.URL), DisableValidateResponseChecksum: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	began = time.Now()
	o = demo.Work(ctx, name, callers, make([]struct{}, calls), func(ctx context.Context, _ struct{}) error {
		_, err := client.ListTables(ctx, nil)
		return err
	})
	return s, o, began
}
