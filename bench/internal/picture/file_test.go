package picture

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func TestFileHoldsWhatWasSavedLast(t *testing.T) {
	name := filepath.Join(t.TempDir(), "new", "picture.png")
	for _, text := range []string{"a long one", "short"} {
		f, err := Create(name)
		require.NoError(t, err)
		require.NoError(t, f.Save(write(text)))
		require.NoError(t, f.Close())
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
}

func TestFileKeepsTheOldPictureIfThereIsNoNewOne(t *testing.T) {
	name := filepath.Join(t.TempDir(), "picture.png")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o644))
	f, err := Create(name)
	require.NoError(t, err)
	failed := errors.New("nothing to draw")
	require.ErrorIs(t, f.Save(func(io.Writer) error { return failed }), failed)
	require.NoError(t, f.Close())
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "old", string(got))
}

func TestFileLeavesNothingBehind(t *testing.T) {
	name := filepath.Join(t.TempDir(), "picture.png")
	f, err := Create(name)
	require.NoError(t, err)
	require.FileExists(t, name)
	require.NoError(t, f.Close())
	require.NoFileExists(t, name)
}

func TestFileThatCannotBeHad(t *testing.T) {
	dir := t.TempDir()
	_, err := Create(dir)
	require.ErrorContains(t, err, dir)

	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err = Create(filepath.Join(file, "picture.png"))
	require.ErrorContains(t, err, file)
}
