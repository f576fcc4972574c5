//go:build unix

package postgres_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server is a real PostgreSQL on 127.0.0.1, and a database of it.
type server struct {
	t    testing.TB
	name string // of the database
	dir  string
	bin  string
	data string
	port string
	who  *syscall.Credential // nil: this user
	cmd  *exec.Cmd
}

// programs returns the folder of PostgreSQL's programs, or skips the test.
func programs(t testing.TB) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian's; the newest is the last
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	if os.Getenv("PACE_REQUIRE_POSTGRES") != "" {
		require.Fail(t, "there is no PostgreSQL, and PACE_REQUIRE_POSTGRES is set")
	}
	t.Skip("there is no PostgreSQL: on Debian `.ci/setup postgresql` installs it")
	return ""
}

// common is the server of most tests.
var common *server

// start returns an empty database on the common server.
func start(t testing.TB) *server {
	t.Helper()
	if common == nil {
		common = launch(t, "fsync = off")
	}
	s := *common
	s.t, s.name = t, fmt.Sprintf("test_%d", time.Now().UnixNano())
	admin := common.open("pace", "127.0.0.1:"+s.port)
	defer admin.Close()
	_, err := admin.Exec("CREATE DATABASE " + s.name)
	require.NoError(t, err)
	return &s
}

// own starts a server that ends with the test.
func own(t testing.TB, settings ...string) *server {
	t.Helper()
	s := launch(t, settings...)
	t.Cleanup(s.remove)
	return s
}

// launch starts a server. It does not serve root, so root starts it as postgres or nobody.
func launch(t testing.TB, settings ...string) *server {
	t.Helper()
	s := &server{t: t, name: "postgres", bin: programs(t)}
	dir, err := os.MkdirTemp("", "pace-postgres") // t.TempDir's parent is root's alone
	require.NoError(t, err)
	s.dir, s.data = dir, filepath.Join(dir, "data")
	if os.Getuid() == 0 {
		s.who = unprivileged(t)
		require.NoError(t, os.Chown(dir, int(s.who.Uid), int(s.who.Gid)))
	}
	initdb := s.command("initdb", "-D", s.data, "-U", "pace", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
	out, err := initdb.CombinedOutput()
	require.NoError(t, err, string(out))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	config := "unix_socket_directories = ''\nlisten_addresses = '127.0.0.1'\nport = " + s.port + "\n" +
		"shared_buffers = 16MB\nmax_connections = 200\n"
	for _, line := range settings {
		config += line + "\n"
	}
	f, err := os.OpenFile(filepath.Join(s.data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(config)
	require.NoError(t, errors.Join(err, f.Close()))
	s.restart()
	return s
}

// unprivileged returns a user that exists and is not root.
func unprivileged(t testing.TB) *syscall.Credential {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		require.NoError(t, err)
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		require.NoError(t, err)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	require.Fail(t, "no user to start PostgreSQL as")
	return nil
}

func (s *server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = attributes(s.who)
	return cmd
}

// restart starts a server that does not run, and returns when it answers.
func (s *server) restart() {
	s.t.Helper()
	s.cmd = s.command("postgres", "-D", s.data)
	log, err := os.Create(filepath.Join(s.dir, "log"))
	require.NoError(s.t, err)
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	require.NoError(s.t, s.cmd.Start())
	db := s.open("pace", "127.0.0.1:"+s.port)
	defer db.Close()
	for range 1000 {
		if err = db.Ping(); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	text, _ := os.ReadFile(log.Name())
	require.NoError(s.t, err, string(text))
}

// kill ends the server and all of its children at once, as a crash does; a second time it does nothing.
func (s *server) kill() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// remove ends the server, and removes what it had.
func (s *server) remove() {
	s.kill()
	_ = os.RemoveAll(s.dir)
}

// open returns the database, as a user at an address of the server's or of a proxy.
func (s *server) open(user, addr string) *sql.DB {
	host, port, err := net.SplitHostPort(addr)
	require.NoError(s.t, err)
	db, err := sql.Open("postgres",
		fmt.Sprintf("host=%s port=%s user=%s dbname=%s sslmode=disable binary_parameters=yes", host, port, user, s.name))
	require.NoError(s.t, err)
	db.SetMaxIdleConns(16)
	return db
}

// connect returns the database for a test.
func (s *server) connect(t testing.TB) *sql.DB {
	db := s.open("pace", "127.0.0.1:"+s.port)
	t.Cleanup(func() { _ = db.Close() })
	return db
}
