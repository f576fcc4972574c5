package file_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/file"
)

var ctx = context.Background()

// The test program is also the other processes: see child.
func TestMain(m *testing.M) {
	if dir := os.Getenv("PACE_FILE_CHILD"); dir != "" {
		child(dir)
	}
	goleak.VerifyTestMain(m)
}

// child counts up the first 8 bytes of a value until it is killed or has done as often as it shall. It says each
// number that it has written.
func child(dir string) {
	store, err := file.Open(dir, options(os.Getenv("PACE_FILE_DURABLE") != "")...)
	if err != nil {
		panic(err)
	}
	times, _ := strconv.Atoi(os.Getenv("PACE_FILE_TIMES"))
	for range times {
		n, err := count(store, 64+rand.IntN(900))
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString(strconv.FormatUint(n, 10) + "\n")
	}
	os.Exit(0)
}

func options(durable bool) []file.Option {
	if durable {
		return []file.Option{file.Durable()}
	}
	return nil
}

// count adds one to the number that begins a value. The rest of it says the number, too.
func count(store shared.Store, size int) (n uint64, err error) {
	err = store.Update(ctx, "counter", func(_ time.Time, old []byte) ([]byte, time.Duration, error) {
		n = 0
		if len(old) >= 8 {
			n = binary.LittleEndian.Uint64(old)
			for i := 8; i < len(old); i++ {
				if old[i] != byte(n) {
					return nil, 0, errors.New("a value of two halves")
				}
			}
		}
		n++
		value := binary.LittleEndian.AppendUint64(nil, n)
		for len(value) < size {
			value = append(value, byte(n))
		}
		return value, time.Hour, nil
	})
	return n, err
}

func start(t *testing.T, dir string, durable bool, times int) (*exec.Cmd, *strings.Builder) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "PACE_FILE_CHILD="+dir, "PACE_FILE_TIMES="+strconv.Itoa(times))
	if durable {
		c.Env = append(c.Env, "PACE_FILE_DURABLE=1")
	}
	said := new(strings.Builder)
	c.Stdout, c.Stderr = said, os.Stderr
	require.NoError(t, c.Start())
	return c, said
}

func only(t *testing.T, dir string) string {
	all, err := filepath.Glob(filepath.Join(dir, "*.limit"))
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

// Eight processes, and eight goroutines here, count together: no update is lost.
func TestProcesses(t *testing.T) {
	watchdog.Start(t)
	dir, times := t.TempDir(), 300
	var all []*exec.Cmd
	for range 8 {
		c, _ := start(t, dir, false, times)
		all = append(all, c)
	}
	store, err := file.Open(dir)
	require.NoError(t, err)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range times {
				if _, err := count(store, 100); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	for _, c := range all {
		require.NoError(t, c.Wait())
	}
	n, err := count(store, 100)
	require.NoError(t, err)
	require.EqualValues(t, 16*times+1, n)
}

// Killed at a random moment, a process has done what it said, and at most one thing more; the next one goes on there.
func TestKilled(t *testing.T) {
	watchdog.Start(t)
	kills := 20
	if n, err := strconv.Atoi(os.Getenv("PACE_KILLS")); err == nil {
		kills = n
	}
	for _, durable := range []bool{false, true} {
		dir := t.TempDir()
		store, err := file.Open(dir)
		require.NoError(t, err)
		before := uint64(0)
		for range kills {
			c, said := start(t, dir, durable, 1<<30)
			for n := uint64(0); n < before+uint64(rand.IntN(50))+1; { // it is at work
				require.NoError(t, store.Update(ctx, "counter", func(_ time.Time, old []byte) ([]byte, time.Duration, error) {
					if len(old) >= 8 {
						n = binary.LittleEndian.Uint64(old)
					}
					return old, time.Hour, nil
				}))
				runtime.Gosched()
			}
			require.NoError(t, c.Process.Kill())
			_ = c.Wait()
			lines := strings.Split(said.String(), "\n")
			last := before
			if len(lines) > 1 {
				last, err = strconv.ParseUint(lines[len(lines)-2], 10, 64)
				require.NoError(t, err)
			}
			n, err := count(store, 100)
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, last+1)
			require.LessOrEqual(t, n, last+2)
			before = n
		}
	}
}

// A file that is cut off at any byte has its last state, or none that is believed: never an older one.
func TestCutOff(t *testing.T) {
	dir := t.TempDir()
	store, err := file.Open(dir)
	require.NoError(t, err)
	for range 9 {
		_, err := count(store, 64)
		require.NoError(t, err)
	}
	whole, err := os.ReadFile(only(t, dir))
	require.NoError(t, err)
	for size := range len(whole) {
		require.NoError(t, os.WriteFile(only(t, dir), whole[:size], 0o600))
		n, err := count(store, 64)
		if err == nil {
			require.EqualValues(t, 10, n, "at %d", size)
			continue
		}
		var corrupt *file.CorruptError
		require.ErrorAs(t, err, &corrupt)
		require.Equal(t, only(t, dir), corrupt.Path)
		require.ErrorIs(t, err, shared.ErrNotWritten)
	}
	require.NoError(t, os.Remove(only(t, dir)))
	store, err = file.Open(dir)
	require.NoError(t, err)
	n, err := count(store, 64)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

// Any one byte that is wrong leaves the last state or the one before it, or none: the power failed.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	store, err := file.Open(dir)
	require.NoError(t, err)
	for range 9 {
		_, err := count(store, 64)
		require.NoError(t, err)
	}
	whole, err := os.ReadFile(only(t, dir))
	require.NoError(t, err)
	for i := range whole {
		damaged := append([]byte(nil), whole...)
		damaged[i] ^= 1 << rand.IntN(8)
		require.NoError(t, os.WriteFile(only(t, dir), damaged, 0o600))
		n, err := count(store, 64)
		if err != nil {
			var corrupt *file.CorruptError
			require.ErrorAs(t, err, &corrupt)
			continue
		}
		require.GreaterOrEqual(t, n, uint64(9), "byte %d", i)
		require.LessOrEqual(t, n, uint64(10), "byte %d", i)
	}
}

// No bytes panic.
func FuzzFile(f *testing.F) {
	dir := f.TempDir()
	store, err := file.Open(dir)
	require.NoError(f, err)
	_, err = count(store, 64)
	require.NoError(f, err)
	all, err := filepath.Glob(filepath.Join(dir, "*.limit"))
	require.NoError(f, err)
	whole, err := os.ReadFile(all[0])
	require.NoError(f, err)
	f.Add(whole)
	f.Add(whole[:700])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		require.NoError(t, os.WriteFile(all[0], content, 0o600))
		err := store.Update(ctx, "counter", func(_ time.Time, old []byte) ([]byte, time.Duration, error) {
			return append([]byte("a"), old[:min(len(old), 100)]...), time.Hour, nil
		})
		if err != nil {
			require.ErrorIs(t, err, shared.ErrNotWritten)
		}
	})
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for _, bad := range []string{plain, filepath.Join(dir, "missing", "folder")} {
		_, err := file.Open(bad)
		var e *shared.StoreError
		require.ErrorAs(t, err, &e)
		require.Contains(t, err.Error(), bad)
	}
	_, err := file.Open(filepath.Join(dir, "missing", "folder"))
	require.ErrorIs(t, err, fs.ErrNotExist)

	store, err := file.Open(filepath.Join(dir, "made"))
	require.NoError(t, err)
	mine := errors.New("mine")
	require.ErrorIs(t, store.Update(ctx, "k", func(time.Time, []byte) ([]byte, time.Duration, error) { return nil, 0, mine }), mine)
	require.PanicsWithValue(t, "mine", func() {
		_ = store.Update(ctx, "k", func(time.Time, []byte) ([]byte, time.Duration, error) { panic("mine") })
	})
	_, err = count(store, 8) // the lock was given back
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "made")))
	err = store.Update(ctx, "other", nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, err, shared.ErrNotWritten)
}

// Names are hashed, and files are for their owner only.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	store, err := file.Open(dir)
	require.NoError(t, err)
	require.NoError(t, store.Update(ctx, "sk-secret/../x", func(time.Time, []byte) ([]byte, time.Duration, error) {
		return []byte("state"), time.Hour, nil
	}))
	path := only(t, dir)
	require.NotContains(t, path, "secret")
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
	}
}

// States grow and shrink, expire, and are removed when they have; a holder of the lock does not hang others.
func TestLife(t *testing.T) {
	dir := t.TempDir()
	store, err := file.Open(dir)
	require.NoError(t, err)
	for _, size := range []int{8, 3000, 100, 100_000, 8, 70_000} {
		_, err := count(store, size)
		require.NoError(t, err)
	}
	n, err := count(store, 20)
	require.NoError(t, err)
	require.EqualValues(t, 7, n)
	require.NoError(t, store.Update(ctx, "short", func(time.Time, []byte) ([]byte, time.Duration, error) {
		return []byte("state"), 0, nil
	}))
	require.NoError(t, store.Update(ctx, "short", func(_ time.Time, old []byte) ([]byte, time.Duration, error) {
		require.Nil(t, old, "it has expired")
		return []byte("state"), 0, nil
	}))
	all, err := filepath.Glob(filepath.Join(dir, "*.limit"))
	require.NoError(t, err)
	require.Len(t, all, 2)
	old := time.Now().Add(-time.Hour)
	for _, path := range all {
		require.NoError(t, os.Chtimes(path, old, old))
	}
	_, err = file.Open(dir) // sweeps
	require.NoError(t, err)
	only(t, dir)
	require.NoError(t, store.Update(ctx, "short", func(_ time.Time, old []byte) ([]byte, time.Duration, error) {
		require.Nil(t, old)
		return []byte("new"), time.Hour, nil
	})) // the removed file is not written to
	second, err := file.Open(dir)
	require.NoError(t, err)
	require.NoError(t, second.Update(ctx, "short", func(_ time.Time, old []byte) ([]byte, time.Duration, error) {
		require.Equal(t, "new", string(old))
		return old, time.Hour, nil
	}))
}

// Whoever holds the lock (a process that is stopped, here a second store) does not hang a caller beyond its context.
func TestLockedByAnother(t *testing.T) {
	watchdog.Start(t)
	dir := t.TempDir()
	one, err := file.Open(dir)
	require.NoError(t, err)
	two, err := file.Open(dir)
	require.NoError(t, err)
	held, release, done := make(chan bool), make(chan bool), make(chan error)
	go func() {
		done <- one.Update(ctx, "k", func(time.Time, []byte) ([]byte, time.Duration, error) {
			close(held)
			<-release
			return []byte("one"), time.Hour, nil
		})
	}()
	<-held
	short, cancel := context.WithCancel(ctx)
	cancel()
	err = two.Update(short, "k", func(time.Time, []byte) ([]byte, time.Duration, error) { return []byte("two"), time.Hour, nil })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, shared.ErrNotWritten)
	close(release)
	require.NoError(t, <-done)
	require.NoError(t, two.Update(ctx, "k", func(_ time.Time, old []byte) ([]byte, time.Duration, error) {
		require.Equal(t, "one", string(old))
		return old, time.Hour, nil
	}))
}

func BenchmarkUpdate(b *testing.B) {
	store, err := file.Open(b.TempDir())
	require.NoError(b, err)
	for b.Loop() {
		if _, err := count(store, 64); err != nil {
			b.Fatal(err)
		}
	}
}
