// Command shared measures limiters on Redis side by side, in one run: pace's, go-redis/redis_rate, throttled
// and go-zero's TokenLimiter. It starts a redis-server of its own (from PATH) on a free port.
//
//	go run .              # in bench/shared
//	go run . -seconds 2   # longer rounds
//	go run . -lease 20ms  # only four processes that lease, one of which is killed
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	log.SetFlags(0)
	seconds := flag.Float64("seconds", 1, "the length of a round")
	rounds := flag.Int("rounds", 3, "rounds; the median counts")
	worker := flag.String("worker", "", "the address of a server: be one of the processes that share a rate (internal)")
	does := flag.String("does", saturate, "what that process does (internal)")
	perSecond := flag.Float64("rate", rate, "the rate that it shares (internal)")
	goroutines := flag.Int("goroutines", 16, "of that process (internal)")
	horizon := flag.Duration("lease", 0, "measure only processes that lease, with this horizon")
	flag.Parse()
	if *worker != "" {
		work(*worker, *does, *horizon, *perSecond, *goroutines, *seconds)
		return
	}
	redis.SetLogger(quiet{}) // of dialling before the server is up
	addr, stop, err := startRedis()
	if err != nil {
		fatal("no redis-server: ", err, " (Debian: apt-get install redis-server)")
	}
	defer stop()
	stopServer = stop
	if *horizon > 0 {
		if err := leases(addr, *horizon, 2*(*seconds)); err != nil {
			fatal(err)
		}
		return
	}
	throughput(addr, time.Duration(*seconds*float64(time.Second)), *rounds)
	localRefusals(addr)
	if err := processes(addr, 4*(*seconds)); err != nil {
		fatal(err)
	}
	for _, horizon := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond} {
		if err := leases(addr, horizon, 2*(*seconds)); err != nil {
			fatal(err)
		}
	}
}

// stopServer stops the server that this process has started, if it has.
var stopServer = func() {}

// fatal ends the program, and the server with it: log.Fatal runs nothing that was deferred.
func fatal(v ...any) {
	stopServer()
	log.Fatal("shared: ", fmt.Sprint(v...))
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// startRedis starts a server without persistence, and returns when it answers.
func startRedis() (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	dir, err := os.MkdirTemp("", "pace-bench")
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	addr = "127.0.0.1:" + port
	c := connect(addr)
	defer c.Close()
	for range 100 {
		if err = c.Ping(context.Background()).Err(); err == nil {
			return addr, stop, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return "", nil, err
}

func connect(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, PoolSize: 64})
}

// serverCPU returns the CPU time that the server has used.
func serverCPU(c *redis.Client) time.Duration {
	var used float64
	info, err := c.Info(context.Background(), "cpu").Result()
	if err != nil {
		fatal(err)
	}
	for line := range strings.Lines(info) {
		for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
				f, err := strconv.ParseFloat(text, 64)
				if err != nil {
					fatal(err)
				}
				used += f
			}
		}
	}
	return time.Duration(used * float64(time.Second))
}

func row(cells ...any) { fmt.Printf("| %-34v | %10v | %10v | %10v | %10v | %14v |\n", cells...) }
