package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

// A world is the servers of one fault, and how clients find them.
type world struct {
	servers []*server
	network *network // between the clients and the first server; nil: none
	admin   *redis.Client
	client  func() redis.UniversalClient
	dir     string
	limits
	limiter func(name string, policy *reserve.Policy, opts ...shared.Option) (l *shared.Limiter, closes func())
	store   *backend // in place of servers of Redis
}

// onRedis is a world without servers so far.
func onRedis() *world {
	w := &world{limits: limits{1000, 100, 50 * time.Millisecond}}
	w.limiter = func(name string, policy *reserve.Policy, opts ...shared.Option) (*shared.Limiter, func()) {
		c := w.client()
		return reserve.Must(shared.New(goredis.Client(c), name, policy, opts...)), func() { _ = c.Close() }
	}
	return w
}

// A server is a process.
type server struct {
	addr string
	args []string
	cmd  *exec.Cmd
}

func (w *world) close() {
	if w == nil {
		return
	}
	if w.admin != nil {
		_ = w.admin.Close()
	}
	if w.network != nil {
		w.network.close()
	}
	for _, s := range w.servers {
		s.kill()
	}
	if w.store != nil {
		w.store.kill()
	}
	_ = os.RemoveAll(w.dir)
}

// add starts one more server. Its data is in memory only, unless the arguments say otherwise.
func (w *world) add(program string, args ...string) (*server, error) {
	if w.dir == "" {
		var err error
		if w.dir, err = os.MkdirTemp("", "pace-fault"); err != nil {
			return nil, err
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(w.dir, port)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	s := &server{addr: "127.0.0.1:" + port}
	if len(args) > 0 && args[len(args)-1] == "--sentinel" { // the configuration file is the first argument
		s.args = []string{program, filepath.Join(dir, "sentinel.conf"), "--sentinel", "--port", port, "--dir", dir}
		if err := os.WriteFile(s.args[1], []byte(args[0]), 0o600); err != nil {
			return nil, err
		}
	} else {
		s.args = append([]string{program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", dir,
			"--enable-debug-command", "yes", "--busy-reply-threshold", "100", "--repl-diskless-sync-delay", "0"}, args...)
	}
	w.servers = append(w.servers, s)
	return s, s.start()
}

// start starts a server, and returns when it answers.
func (s *server) start() error {
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return until(10*time.Second, s.args[0]+" answers", func() bool {
		return strings.HasPrefix(s.cli("ping"), "PONG")
	})
}

func (s *server) kill() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *server) signal(what syscall.Signal) error { return s.cmd.Process.Signal(what) }

// cli returns what a server answers to a command, or nothing if it does not.
func (s *server) cli(args ...string) string {
	_, port, _ := net.SplitHostPort(s.addr)
	out, _ := exec.Command("redis-cli", append([]string{"-p", port}, args...)...).Output()
	return string(out)
}

// do sends a command to the first server.
func (w *world) do(args ...any) error { return w.admin.Do(context.Background(), args...).Err() }

// until waits for something.
func until(limit time.Duration, what string, done func() bool) error {
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(2 * time.Millisecond) {
		if done() {
			return nil
		}
	}
	return fmt.Errorf("not within %v: %s", limit, what)
}

// freePort returns a port for which that port + 10000, a cluster's bus, is one as well.
func freePort() (string, error) {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if port < 55000 {
			return strconv.Itoa(port), nil
		}
	}
}

// single is one server; network: behind a proxy.
func single(behindProxy bool, args ...string) func(program string) (*world, error) {
	return func(program string) (*world, error) {
		w := onRedis()
		s, err := w.add(program, args...)
		if err != nil {
			return w, err
		}
		addr := s.addr
		if behindProxy {
			if w.network, err = newNetwork(addr); err != nil {
				return w, err
			}
			addr = w.network.addr()
		}
		w.admin = redis.NewClient(&redis.Options{Addr: s.addr, ReadTimeout: 30 * time.Second})
		w.client = func() redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, DialerRetries: 1})
		}
		return w, nil
	}
}

// watched is a master and a replica, with a Sentinel that makes the replica the master when that is
// silent for 500 ms.
func watched(program string) (*world, error) {
	w, err := single(false)(program)
	if err != nil {
		return w, err
	}
	_, port, _ := net.SplitHostPort(w.servers[0].addr)
	if _, err := w.add(program, "--replicaof", "127.0.0.1 "+port); err != nil {
		return w, err
	}
	if err := until(10*time.Second, "the replica is online", func() bool {
		return strings.Contains(w.servers[0].cli("info", "replication"), "state=online")
	}); err != nil {
		return w, err
	}
	sentinel, err := w.add(program, "sentinel monitor pace 127.0.0.1 "+port+" 1\n"+
		"sentinel down-after-milliseconds pace 500\n", "--sentinel")
	if err != nil {
		return w, err
	}
	w.client = func() redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "pace", SentinelAddrs: []string{sentinel.addr},
			ContextTimeoutEnabled: true, DialerRetries: 1})
	}
	return w, until(20*time.Second, "the sentinel knows the replica", func() bool {
		return strings.Contains(sentinel.cli("sentinel", "replicas", "pace"), "slave")
	})
}

// cluster is three masters and a replica of each. A master that is silent for a second is replaced.
func cluster(program string) (*world, error) {
	w := onRedis()
	create := []string{"--cluster", "create"}
	var addrs []string
	for range 6 {
		s, err := w.add(program, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000")
		if err != nil {
			return w, err
		}
		addrs = append(addrs, s.addr)
	}
	create = append(append(create, addrs...), "--cluster-replicas", "1", "--cluster-yes")
	if out, err := exec.Command("redis-cli", create...).CombinedOutput(); err != nil {
		return w, fmt.Errorf("%w: %s", err, out)
	}
	w.client = func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true, DialerRetries: 1})
	}
	return w, until(20*time.Second, "the cluster has its replicas", func() bool {
		return w.masters() == 3 && w.ready() == 6
	})
}

// masters returns how many servers say that they are masters.
func (w *world) masters() (n int) {
	for _, s := range w.servers {
		if s.cmd != nil && strings.HasPrefix(s.cli("role"), "master") {
			n++
		}
	}
	return n
}

// ready returns how many nodes are in order, and have or are a replica in order.
func (w *world) ready() (n int) {
	for _, s := range w.servers {
		replication := s.cli("info", "replication")
		if strings.Contains(s.cli("cluster", "info"), "cluster_state:ok") &&
			(strings.Contains(replication, "state=online") || strings.Contains(replication, "master_link_status:up")) {
			n++
		}
	}
	return n
}
