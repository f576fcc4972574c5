package file

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/shared"
)

// old makes a file of a folder two minutes older than it is.
func old(t *testing.T, path string) {
	at := time.Now().Add(-2 * time.Minute)
	require.NoError(t, os.Chtimes(path, at, at))
}

// Files of others stay, whatever their names.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	names := []string{
		"new-york.csv", "new-contract.docx", "thesis.txt", "speed.limit", ".pace-new-notes",
		"0123456789abcdef0123456789abcdef.limit", // the name of a limiter's file, but not its form
	}
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600))
		old(t, filepath.Join(dir, name))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "new-folder"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".pace-new-123"), 0o700))
	left := filepath.Join(dir, ".pace-new-456") // of a process that was killed
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	old(t, left)
	_, err := Open(dir)
	require.NoError(t, err)
	for _, name := range append(names, "new-folder", ".pace-new-123") {
		_, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err, name)
	}
	require.NoFileExists(t, left)
}

// A state that has not expired stays, however long nobody has used it: also where open files can't be removed.
func TestAfterAMinute(t *testing.T) {
	defer func(was bool) { removesOpen = was }(removesOpen)
	for _, removesOpen = range []bool{true, false} {
		dir := t.TempDir()
		granted := 0
		for range 3 { // runs of a program
			l := reserve.Must(shared.NewIn(reserve.Must(Open(dir)), "day", reserve.Must(calendar.Policy(10, calendar.FromFirst(24*time.Hour)))))
			for range 6 {
				if reserve.Must(l.TryAcquire(t.Context(), 1)) {
					granted++
				}
			}
			list, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, list, 1)
			old(t, filepath.Join(dir, list[0].Name()))
		}
		require.Equal(t, 10, granted, removesOpen)
	}
}

func TestNoFolder(t *testing.T) {
	_, err := Open("")
	var bad *reserve.ValueError
	require.ErrorAs(t, err, &bad)
}

// While another process holds a lock, callers give up in time, and leave nothing behind.
func TestALockThatIsHeld(t *testing.T) {
	dir := t.TempDir()
	l := reserve.Must(shared.NewIn(reserve.Must(Open(dir)), "held", reserve.Must(pace.Bursty(1000)), shared.WithTimeout(time.Minute)))
	require.True(t, reserve.Must(l.TryAcquire(t.Context(), 1)))
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	other, err := os.OpenFile(filepath.Join(dir, list[0].Name()), os.O_RDWR, 0)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, tryLock(other))
	before := runtime.NumGoroutine()
	for range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, err := l.TryAcquire(ctx, 1)
		require.Error(t, err)
		cancel()
	}
	few := func() bool { return runtime.NumGoroutine() <= before+4+1 } // this function has one, too
	require.Eventually(t, few, 10*time.Second, time.Millisecond, "two calls go on, one waits for the lock, each has its goroutine")
	unlock(other)
	require.True(t, reserve.Must(l.TryAcquire(t.Context(), 1)))
	again, err := os.OpenFile(filepath.Join(dir, list[0].Name()), os.O_RDWR, 0)
	require.NoError(t, err)
	defer again.Close()
	free := func() bool { return tryLock(again) == nil }
	require.Eventually(t, free, 10*time.Second, time.Millisecond, "nobody holds it who does not use it")
}

// A link to nothing in the place of a limiter's file is an error, at once.
func TestALinkToNothing(t *testing.T) {
	dir := t.TempDir()
	s := reserve.Must(Open(dir))
	require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), s.(*store).path("pace:{link}")))
	l := reserve.Must(shared.NewIn(s, "link", reserve.Must(pace.Bursty(1000))))
	_, err := l.TryAcquire(t.Context(), 1)
	require.ErrorContains(t, err, "a link to nothing")
}
