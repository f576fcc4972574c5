package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/lib/pq"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/natskv"
	"github.com/nextfree/pace/reserve/shared/postgres"
)

// A backend is the server of a store: PostgreSQL or NATS.
type backend struct {
	addr  string
	start func() (*exec.Cmd, error)
	ready func() error
	cmd   *exec.Cmd
}

func (b *backend) run() error {
	cmd, err := b.start()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	b.cmd = cmd
	return until(20*time.Second, "the server answers", func() bool {
		err = b.ready()
		return err == nil
	})
}

// kill ends the server, and PostgreSQL's children with it, as a crash does.
func (b *backend) kill() {
	if b.cmd != nil {
		_ = b.signal(syscall.SIGCONT)
		_ = b.cmd.Process.Signal(syscall.SIGQUIT)
		_ = b.cmd.Wait()
		b.cmd = nil
	}
}

// signal sends a signal to the server and its children, which may end meanwhile.
func (b *backend) signal(what syscall.Signal) error {
	pid := b.cmd.Process.Pid
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	err := syscall.Kill(pid, what)
	for _, child := range strings.Fields(string(children)) {
		n, _ := strconv.Atoi(child)
		if failed := syscall.Kill(n, what); failed != syscall.ESRCH {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// stores are the faults of the stores that have a server. An update makes two or three round trips, so it has more
// time.
func stores() (all []fault) {
	slower := limits{100, 10, 500 * time.Millisecond}
	nothing := func(*world) error { return nil }
	killed := func(w *world) error {
		w.store.kill()
		return nil
	}
	restarted := func(w *world) error { return w.store.run() }
	signal := func(s syscall.Signal) func(w *world) error {
		return func(w *world) error { return w.store.signal(s) }
	}
	for _, s := range []struct {
		name  string
		world func(w *world, behindProxy bool) error
	}{{"PostgreSQL", onPostgres}, {"NATS", onNATS}} {
		world := func(behindProxy bool) func(string) (*world, error) {
			return func(string) (*world, error) {
				w := &world{limits: slower}
				dir, err := os.MkdirTemp("", "pace-fault")
				if err != nil {
					return w, err
				}
				w.dir = dir
				return w, s.world(w, behindProxy)
			}
		}
		toxic := func(name, toxic, direction string, attributes map[string]int) fault {
			return fault{name: s.name + " " + name, world: world(true),
				begin: poison(toxic, direction, attributes), pass: passes(heal)}
		}
		all = append(all,
			fault{name: s.name + ": none", world: world(false), begin: nothing, pass: passes(nothing)},
			fault{name: s.name + " killed", world: world(false), begin: killed, pass: passes(restarted), loses: true},
			fault{name: s.name + " stopped", world: world(false),
				begin: signal(syscall.SIGSTOP), pass: passes(signal(syscall.SIGCONT))},
			toxic("slow by 100 ms", "latency", "downstream", map[string]int{"latency": 100}),
			toxic("in a black hole", "timeout", "upstream", nil),
			toxic("reset", "reset_peer", "downstream", nil),
			toxic("cut after 4,000 bytes", "limit_data", "downstream", map[string]int{"bytes": 4000}),
		)
	}
	sqls := func(lines ...string) func(w *world) error {
		return func(w *world) error {
			db, err := sql.Open("postgres", dsn(w.store.addr, "pace"))
			if err != nil {
				return err
			}
			defer db.Close()
			for _, line := range lines {
				if _, err := db.Exec(line); err != nil {
					return err
				}
			}
			return nil
		}
	}
	inPostgres := func(string) (*world, error) {
		w := &world{limits: slower}
		dir, err := os.MkdirTemp("", "pace-fault")
		if err != nil {
			return w, err
		}
		w.dir = dir
		return w, onPostgres(w, false)
	}
	return append(all,
		fault{name: "PostgreSQL: the table is missing", world: inPostgres,
			begin: sqls("ALTER TABLE limits RENAME TO away"), pass: passes(sqls("ALTER TABLE away RENAME TO limits"))},
		fault{name: "PostgreSQL: no permission", world: inPostgres,
			begin: sqls("REVOKE UPDATE ON limits FROM app"), pass: passes(sqls("GRANT UPDATE ON limits TO app"))},
		fault{name: "PostgreSQL: the row is locked", world: inPostgres,
			begin: nothing, pass: sqls("BEGIN; SELECT 1 FROM limits FOR UPDATE; SELECT pg_sleep(1.2); COMMIT")},
	)
}

func dsn(addr, user string) string {
	return "postgres://" + user + "@" + addr + "/postgres?sslmode=disable&connect_timeout=5&binary_parameters=yes"
}

// onPostgres starts a server. It does not serve root, so root starts it as another user.
func onPostgres(w *world, behindProxy bool) error {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		return errors.New("there is no PostgreSQL: on Debian `.ci/setup postgresql` installs it")
	}
	bin, data := found[len(found)-1], filepath.Join(w.dir, "data")
	var who *syscall.Credential
	for _, name := range []string{"nobody", "postgres"} {
		if u, err := user.Lookup(name); err == nil && os.Getuid() == 0 {
			uid, _ := strconv.Atoi(u.Uid)
			gid, _ := strconv.Atoi(u.Gid)
			who = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
			if err := os.Chown(w.dir, uid, gid); err != nil {
				return err
			}
		}
	}
	program := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir = w.dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
		return cmd
	}
	initdb := program("initdb", "-D", data, "-U", "pace", "-A", "trust", "--no-sync", "--no-locale")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	b := &backend{addr: "127.0.0.1:" + port}
	b.start = func() (*exec.Cmd, error) {
		return program("postgres", "-D", data, "-p", port, "-h", "127.0.0.1", "-k", "", "-c", "max_connections=200"), nil
	}
	admin, err := sql.Open("postgres", dsn(b.addr, "pace"))
	if err != nil {
		return err
	}
	b.ready = admin.Ping
	w.store = b
	if err := b.run(); err != nil {
		return err
	}
	defer admin.Close()
	b.ready = func() error {
		db, err := sql.Open("postgres", dsn(b.addr, "pace"))
		if err != nil {
			return err
		}
		defer db.Close()
		return db.Ping()
	}
	if err := postgres.Create(context.Background(), admin, "limits"); err != nil {
		return err
	}
	if _, err := admin.Exec("CREATE ROLE app LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON limits TO app"); err != nil {
		return err
	}
	addr, err := w.reach(b.addr, behindProxy)
	w.limiter = func(name string, policy *reserve.Policy, opts ...shared.Option) (*shared.Limiter, func()) {
		db := reserve.Must(sql.Open("postgres", dsn(addr, "app")))
		store := reserve.Must(postgres.Open(db, "limits"))
		return reserve.Must(shared.NewIn(store, name, policy, opts...)), func() { _ = db.Close() }
	}
	return err
}

// reach returns the address at which clients find a server.
func (w *world) reach(addr string, behindProxy bool) (string, error) {
	if !behindProxy {
		return addr, nil
	}
	var err error
	if w.network, err = newNetwork(addr); err != nil {
		return "", err
	}
	return w.network.addr(), nil
}

// onNATS starts a server in a process of its own, which is this program.
func onNATS(w *world, behindProxy bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	b := &backend{addr: "127.0.0.1:" + port}
	b.start = func() (*exec.Cmd, error) {
		return exec.Command(self, "-nats", b.addr+","+filepath.Join(w.dir, "data")), nil
	}
	b.ready = func() error {
		c, err := net.Dial("tcp", b.addr)
		if err == nil {
			c.Close()
		}
		return err
	}
	w.store = b
	if err := b.run(); err != nil {
		return err
	}
	c, err := nats.Connect("nats://" + b.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	js, err := jetstream.New(c)
	if err != nil {
		return err
	}
	if _, err := js.CreateKeyValue(context.Background(), jetstream.KeyValueConfig{Bucket: "limits"}); err != nil {
		return err
	}
	addr, err := w.reach(b.addr, behindProxy)
	w.limiter = func(name string, policy *reserve.Policy, opts ...shared.Option) (*shared.Limiter, func()) {
		c := reserve.Must(nats.Connect("nats://"+addr, nats.ReconnectBufSize(-1), nats.MaxReconnects(-1),
			nats.ReconnectWait(50*time.Millisecond), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})))
		store := reserve.Must(natskv.Open(reserve.Must(jetstream.New(c)), "limits"))
		return reserve.Must(shared.NewIn(store, name, policy, opts...)), c.Close
	}
	return err
}

// serveNATS is a NATS server until it is killed.
func serveNATS(where string) {
	addr, dir, _ := strings.Cut(where, ",")
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		log.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	s, err := natsserver.NewServer(
		&natsserver.Options{Host: host, Port: port, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	s.WaitForShutdown()
}
