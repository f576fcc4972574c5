package main

import (
	"errors"
	"strings"
	"syscall"
	"time"
)

// A fault happens to a server, and passes.
type fault struct {
	name  string
	world func(program string) (*world, error)
	begin func(w *world) error
	pass  func(w *world) error // waits for as long as the fault is to last, and ends it; nil: it passes by itself
	loses bool                 // what was charged is lost, as documented: a full store more may be had
}

// passes returns what ends a fault after its time.
func passes(end func(w *world) error) func(w *world) error {
	return func(w *world) error {
		time.Sleep(during)
		return end(w)
	}
}

func (w *world) first() *server { return w.servers[0] }

func kill(w *world) error {
	w.first().kill()
	return nil
}

func restart(w *world) error { return w.first().start() }

// command returns what sends commands to the server: "CONFIG SET maxmemory 1".
func command(lines ...string) func(w *world) error {
	return func(w *world) error {
		for _, line := range lines {
			var args []any
			for _, word := range strings.Fields(line) {
				args = append(args, word)
			}
			if err := w.do(args...); err != nil {
				return err
			}
		}
		return nil
	}
}

// keys returns what does something to each group's key.
func keys(do func(w *world, key string) error) func(w *world) error {
	return func(w *world) error {
		for _, m := range modes {
			if err := do(w, m.key()); err != nil {
				return err
			}
		}
		return nil
	}
}

// replace returns what puts something else where the limiters' states are.
func replace(how ...any) func(w *world) error {
	const script = "redis.call('DEL', KEYS[1]) return redis.call(ARGV[1], KEYS[1], ARGV[2])" // a limiter may write between
	return keys(func(w *world, key string) error {
		return w.do(append([]any{"EVAL", script, 1, key}, how...)...)
	})
}

var remove = keys(func(w *world, key string) error { return w.do("DEL", key) })

func poison(toxic, direction string, attributes map[string]int) func(w *world) error {
	return func(w *world) error { return w.network.poison(toxic, direction, attributes) }
}

func heal(w *world) error { return w.network.heal() }

func faults() []fault {
	nothing := func(*world) error { return nil }
	kept := single(false, "--appendonly", "yes", "--appendfsync", "always")
	toxic := func(name, toxic, direction string, attributes map[string]int) fault {
		return fault{name: name, world: single(true), begin: poison(toxic, direction, attributes), pass: passes(heal)}
	}
	return append([]fault{
		{name: "none", world: single(false), begin: nothing, pass: passes(nothing)},
		{name: "killed", world: single(false), begin: kill, pass: passes(restart), loses: true},
		{name: "stopped", world: single(false),
			begin: func(w *world) error { return w.first().signal(syscall.SIGSTOP) },
			pass:  passes(func(w *world) error { return w.first().signal(syscall.SIGCONT) })},
		{name: "restarted with its data", world: kept, begin: kill, pass: restart},
		{name: "restarted without its data", world: single(false), begin: kill, pass: restart, loses: true},
		{name: "out of memory", world: single(false, "--maxmemory-policy", "noeviction"),
			begin: command("CONFIG SET maxmemory 1"), pass: passes(command("CONFIG SET maxmemory 0"))},
		{name: "paused", world: single(false), begin: command("CLIENT PAUSE 1200 ALL"), pass: command("PING")},
		{name: "asleep", world: single(false), begin: nothing, pass: command("DEBUG SLEEP 1.2")},
		{name: "busy script", world: single(false), begin: busy, pass: passes(command("SCRIPT KILL"))},
		{name: "data flushed", world: single(false), begin: command("FLUSHALL"), pass: nil, loses: true},
		{name: "scripts flushed", world: single(false), begin: nothing, pass: often(command("SCRIPT FLUSH"))},
		{name: "wrong type", world: single(false), begin: replace("LPUSH", 1), pass: passes(remove), loses: true},
		{name: "garbage value", world: single(false),
			begin: replace("SET", "\x00\x01pac\x02 garbage"), pass: passes(remove), loses: true},
		toxic("slow by 200 ms", "latency", "downstream", map[string]int{"latency": 200}),
		toxic("slow by 20 to 80 ms", "latency", "downstream", map[string]int{"latency": 50, "jitter": 30}),
		toxic("black hole", "timeout", "upstream", nil),
		toxic("reset", "reset_peer", "downstream", nil),
		toxic("cut after 400 bytes", "limit_data", "downstream", map[string]int{"bytes": 400}),
		toxic("every other answer lost", "every_other", "downstream", map[string]int{"times": 0}),
		toxic("every other answer twice", "every_other", "downstream", map[string]int{"times": 2}),
		{name: "a replica", world: single(false),
			begin: command("REPLICAOF 127.0.0.1 1"), pass: passes(command("REPLICAOF NO ONE"))},
		{name: "failover, Sentinel", world: watched, begin: kill, pass: promoted, loses: true},
		{name: "failover, cluster", world: cluster, begin: killMaster, pass: elected, loses: true},
	}, stores()...)
}

// often returns what sends something every few milliseconds, while a fault lasts.
func often(do func(w *world) error) func(w *world) error {
	return func(w *world) error {
		for begin := time.Now(); time.Since(begin) < during; time.Sleep(5 * time.Millisecond) {
			if err := do(w); err != nil {
				return err
			}
		}
		return nil
	}
}

// busy starts a script that does not end.
func busy(w *world) error {
	go func() {
		_ = w.do("EVAL", "while true do end", 0) // until it is killed, which is an error
	}()
	return until(10*time.Second, "the server is busy", func() bool {
		return strings.HasPrefix(w.first().cli("ping"), "BUSY")
	})
}

// promoted waits until the Sentinel names another master.
func promoted(w *world) error {
	sentinel := w.servers[len(w.servers)-1]
	was := sentinel.cli("sentinel", "get-master-addr-by-name", "pace")
	return until(30*time.Second, "the sentinel promotes the replica", func() bool {
		return sentinel.cli("sentinel", "get-master-addr-by-name", "pace") != was
	})
}

// killMaster kills the first master that has keys. The others do not answer either, until its
// replica has taken its place: a cluster serves all of its slots or none.
func killMaster(w *world) error {
	for _, s := range w.servers {
		if strings.HasPrefix(s.cli("role"), "master") && strings.TrimSpace(s.cli("dbsize")) != "0" {
			s.kill()
			return nil
		}
	}
	return errors.New("no master has keys")
}

// elected waits until the cluster has three masters again.
func elected(w *world) error {
	return until(30*time.Second, "the replica is elected", func() bool { return w.masters() == 3 })
}
