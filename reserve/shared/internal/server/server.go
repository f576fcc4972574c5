// Package server starts real Redis and Valkey servers for tests, and ends them.
package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Programs returns the servers to test with: Redis, which must be there, and
// Valkey, if it is. A missing Redis fails the test.
func Programs(t testing.TB) []string {
	t.Helper()
	_, err := exec.LookPath("redis-server")
	require.NoError(t, err, "redis-server is not in PATH; `make test` installs it (Debian: apt-get install redis-server)")
	found := []string{"redis-server"}
	if _, err := exec.LookPath("valkey-server"); err == nil {
		found = append(found, "valkey-server")
	}
	return found
}

// A Server is a running server on 127.0.0.1, without persistence.
type Server struct {
	Addr string
	t    testing.TB
	args []string
	cmd  *exec.Cmd
}

// Start starts a Redis with more arguments, and ends it with the test.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return StartProgram(t, Programs(t)[0], args...)
}

// StartProgram starts one of Programs.
func StartProgram(t testing.TB, program string, args ...string) *Server {
	t.Helper()
	port := freePort(t)
	s := &Server{t: t, Addr: "127.0.0.1:" + port}
	s.args = append([]string{program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir()}, args...)
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Restart starts a server that was killed again, at the same address, empty.
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
			if strings.Contains(lines.Text(), "eady to accept connections") {
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

// Kill kills the server; a second time it does nothing.
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

// Cluster starts three servers as a cluster, each with so many replicas. A master that does not answer is
// replaced after a second.
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

// cli returns what a server answers to a command, or nothing if it does not.
func (s *Server) cli(args ...string) string {
	_, port, _ := net.SplitHostPort(s.Addr)
	out, _ := exec.Command("redis-cli", append([]string{"-p", port}, args...)...).Output()
	return string(out)
}

// freePort returns a port for which that port + 10000, a cluster's bus, is one as well.
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
