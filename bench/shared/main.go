// Command shared measures limiters on Redis side by side, in one run: pace's, go-redis/redis_rate and throttled. It
// starts a redis-server of its own (from PATH) on a free port.
//
//	go run .              # in bench/shared
//	go run . -seconds 2   # longer rounds
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
	flag.Parse()
	redis.SetLogger(quiet{}) // of dialling before the server is up
	addr, stop, err := startRedis()
	if err != nil {
		log.Fatal("shared: no redis-server: ", err, " (Debian: apt-get install redis-server)")
	}
	err = measureAll(addr, time.Duration(*seconds*float64(time.Second)), *rounds)
	stop()
	if err != nil {
		log.Fatal("shared: ", err)
	}
}

func measureAll(addr string, length time.Duration, rounds int) error {
	if err := throughput(addr, length, rounds); err != nil {
		return err
	}
	if err := localRefusals(addr); err != nil {
		return err
	}
	return evenness(addr, 4*length)
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
	cmd := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", dir)
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
	return redis.NewClient(&redis.Options{
		Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, PoolSize: 64,
	})
}

// serverCPU returns the processor time that the server has used.
func serverCPU(c *redis.Client) (time.Duration, error) {
	info, err := c.Info(context.Background(), "cpu").Result()
	if err != nil {
		return 0, err
	}
	used := 0.0
	for line := range strings.Lines(info) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "used_cpu_sys" && name != "used_cpu_user" {
			continue
		}
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		used += seconds
	}
	return time.Duration(used * float64(time.Second)), nil
}
