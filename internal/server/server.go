// Package server starts real Redis and Valkey servers for tests, and ends them.
package server

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Program is the server to test with: redis-server, or the variable PACE_REDIS ("valkey-server").
func Program() string { return cmp.Or(os.Getenv("PACE_REDIS"), "redis-server") }

// need skips a test without the server's program, or fails it with PACE_REQUIRE_REDIS.
func need(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath(Program()); err == nil {
		return
	}
	if os.Getenv("PACE_REQUIRE_REDIS") == "" {
		t.Skipf("this test needs %s, which is not in PATH (`.ci/setup %[1]s` installs it on Debian)", Program())
	}
	require.Fail(t, Program()+" is not in PATH, and PACE_REQUIRE_REDIS is set")
}

// A Server is a running server on 127.0.0.1, without persistence.
type Server struct {
	Addr string
	t    testing.TB
	args []string
	cmd  *exec.Cmd
}

// Start starts a server with more arguments, and ends it with the test.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	need(t)
	port := freePort(t)
	s := &Server{t: t, Addr: "127.0.0.1:" + port}
	s.args = append([]string{
		Program(), "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir(),
	}, args...)
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Sentinel starts a Sentinel that knows a master as "pace". It makes a replica the master when told to, or when the
// master is silent for half a second.
func Sentinel(t testing.TB, master *Server) *Server {
	t.Helper()
	port, dir := freePort(t), t.TempDir()
	s := &Server{t: t, Addr: "127.0.0.1:" + port}
	_, masters, _ := net.SplitHostPort(master.Addr)
	file := filepath.Join(dir, "sentinel.conf")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil,
		"sentinel monitor pace 127.0.0.1 %s 1\nsentinel down-after-milliseconds pace 500\n", masters), 0o600))
	s.args = []string{Program(), file, "--sentinel", "--port", port, "--bind", "127.0.0.1", "--dir", dir}
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Replica starts a replica, and returns when it has the data.
func Replica(t testing.TB, of *Server) *Server {
	t.Helper()
	_, port, _ := net.SplitHostPort(of.Addr)
	s := Start(t, "--replicaof", "127.0.0.1 "+port)
	require.Eventually(t, func() bool {
		return strings.Contains(s.cli("info", "replication"), "master_link_status:up")
	}, 20*time.Second, 20*time.Millisecond)
	return s
}

// Restart starts a killed server again, at the same address, empty.
func (s *Server) Restart() {
	s.t.Helper()
	cmd := exec.Command(s.args[0], s.args[1:]...)
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	cmd.Stderr = cmd.Stdout
	dieWithUs(cmd)
	require.NoError(s.t, cmd.Start())
	s.cmd = cmd
	ready := make(chan error, 1)
	go func() {
		var log strings.Builder
		once := sync.OnceFunc(func() { ready <- nil })
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			fmt.Fprintln(&log, lines.Text())
			if strings.Contains(lines.Text(), "eady to accept connections") || strings.Contains(lines.Text(), "Sentinel ID") {
				once()
			}
		}
		_, _ = io.Copy(io.Discard, out)
		select {
		case ready <- fmt.Errorf("the server ended: %s", log.String()):
		default:
		}
	}()
	select {
	case err := <-ready:
		require.NoError(s.t, err)
	case <-time.After(20 * time.Second):
		require.Fail(s.t, "the server does not start")
	}
}

// Kill kills the server. A second Kill does nothing.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Stop stops the server (SIGSTOP): it keeps its connections and answers nothing.
func (s *Server) Stop() { require.NoError(s.t, s.cmd.Process.Signal(sigstop)) }

// Continue lets it go on.
func (s *Server) Continue() { require.NoError(s.t, s.cmd.Process.Signal(sigcont)) }

// Cluster starts three masters with replicas each. A silent master is replaced after a second.
func Cluster(t testing.TB, replicas int) []*Server {
	t.Helper()
	var nodes []*Server
	args := []string{"--cluster", "create"}
	for range 3 * (1 + replicas) {
		s := Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000")
		nodes = append(nodes, s)
		args = append(args, s.Addr)
	}
	args = append(args, "--cluster-replicas", strconv.Itoa(replicas), "--cluster-yes")
	out, err := exec.Command("redis-cli", args...).CombinedOutput()
	require.NoError(t, err, string(out))
	t.Log(string(out))
	for _, s := range nodes {
		require.Eventually(t, func() bool {
			return strings.Contains(s.cli("cluster", "info"), "cluster_state:ok")
		}, 20*time.Second, 50*time.Millisecond)
	}
	if replicas > 0 {
		require.Eventually(t, func() bool {
			masters := 0
			for _, s := range nodes {
				online := strings.Contains(s.cli("info", "replication"), "state=online")
				if online && strings.HasPrefix(s.cli("role"), "master") {
					masters++
				}
			}
			return masters == 3
		}, 20*time.Second, 50*time.Millisecond)
	}
	return nodes
}

// Masters returns which of the servers are masters.
func Masters(nodes []*Server) (masters []*Server) {
	for _, s := range nodes {
		if strings.HasPrefix(s.cli("role"), "master") {
			masters = append(masters, s)
		}
	}
	return masters
}

// cli returns a command's answer, or nothing.
func (s *Server) cli(args ...string) string {
	_, port, _ := net.SplitHostPort(s.Addr)
	out, _ := exec.Command("redis-cli", append([]string{"-p", port}, args...)...).Output()
	return string(out)
}

// freePort returns a port whose cluster bus, that port + 10000, is a port too.
func freePort(t testing.TB) string {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if port < 55000 {
			return strconv.Itoa(port)
		}
	}
	require.Fail(t, "no free port")
	return ""
}
