package file

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/shared"
)

// A file of another user, or a folder that this process may not write: waiting does not cure it, so FailOpen does not
// hide it.
func TestFileOfAnotherUser(t *testing.T) {
	runtime.LockOSThread() // the thread ends with the test
	for _, taken := range []string{"file", "folder"} {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
		require.NoError(t, os.Chmod(dir, 0o755))
		s, err := Open(dir)
		require.NoError(t, err)
		update := func() error {
			return s.Update(t.Context(), "pace:{api}", func(time.Time, []byte) ([]byte, time.Duration, error) {
				return []byte("state"), time.Hour, nil
			})
		}
		if taken == "file" {
			require.NoError(t, update())
			s, err = Open(dir) // it has no open file
			require.NoError(t, err)
			require.NoError(t, os.Chmod(s.(*store).path("pace:{api}"), 0))
		} else {
			require.NoError(t, os.Chmod(dir, 0o555))
		}
		restore := notRoot(t)
		err = update()
		restore()
		var refused *shared.ConfigError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, os.ErrPermission)
		require.NoError(t, os.Chmod(dir, 0o755))
	}
}

// notRoot takes from this thread what root may do with files.
func notRoot(t *testing.T) (restore func()) {
	set := func(user int) {
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, uintptr(user), 0, 0)
	}
	set(65534)
	return func() { set(os.Geteuid()) }
}
