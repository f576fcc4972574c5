package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// version is aimock's.
const version = "1.43.0"

// A mock is aimock, running.
type mock struct {
	url  string
	stop func()
}

// startMock fetches aimock, and starts it with an answer to each question.
func startMock(ctx context.Context, questions int, refuse float64) (m mock, err error) {
	dir, err := os.MkdirTemp("", "aimock")
	if err != nil {
		return m, err
	}
	remove := func() { os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			remove()
		}
	}()
	install := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--silent", "--no-audit", "--no-fund", "@copilotkit/aimock@"+version)
	install.Stderr = os.Stderr
	if err := install.Run(); err != nil {
		return m, fmt.Errorf("npm can't fetch aimock: %w", err)
	}
	fixtures := filepath.Join(dir, "fixtures.json")
	if err := writeFixtures(fixtures, questions); err != nil {
		return m, err
	}
	port, err := freePort()
	if err != nil {
		return m, err
	}
	ctx, cancel := context.WithCancel(ctx)
	node := exec.CommandContext(ctx, "node", filepath.Join(dir, "node_modules/@copilotkit/aimock/dist/cli.js"), "--strict", "--log-level", "silent",
		"--port", fmt.Sprint(port), "--fixtures", fixtures, "--latency", "1", "--chaos-ratelimit", fmt.Sprint(refuse))
	node.Stderr = os.Stderr
	if err := node.Start(); err != nil {
		cancel()
		return m, err
	}
	m = mock{url: fmt.Sprintf("http://127.0.0.1:%d", port), stop: func() {
		cancel()
		node.Wait()
		remove()
	}}
	for range 100 {
		conn, err := net.Dial("tcp", m.url[len("http://"):])
		if err == nil {
			return m, conn.Close()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	m.stop()
	return mock{}, errors.New("aimock does not listen")
}

// question returns a prompt that is answered in a way of its own.
func question(i int) string { return fmt.Sprintf("question %d.", i) }

// writeFixtures writes what aimock answers, and the usage that it tells: other numbers for each
// question.
func writeFixtures(name string, questions int) error {
	type object map[string]any
	var fixtures []object
	for i := range questions {
		input, output := 100+7*i, 10+3*i
		fixtures = append(fixtures, object{
			"match": object{"userMessage": question(i)},
			"response": object{
				"content": strings.Repeat("so, ", output),
				"usage":   object{"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output},
			},
		})
	}
	b, err := json.Marshal(object{"fixtures": fixtures})
	if err != nil {
		return err
	}
	return os.WriteFile(name, b, 0o600)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
