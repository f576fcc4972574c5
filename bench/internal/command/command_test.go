package command

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func drawing(text string) func() (func(io.Writer) error, error) {
	return func() (func(io.Writer) error, error) {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}, nil
	}
}

func TestDraw(t *testing.T) {
	out := filepath.Join(t.TempDir(), "new", "picture.png")
	failed := errors.New("failed")
	fails := func() (func(io.Writer) error, error) { return nil, failed }
	require.ErrorIs(t, Draw(io.Discard, out, fails), failed)
	require.NoFileExists(t, out)
	for _, text := range []string{"a long one", "short"} {
		var said strings.Builder
		require.NoError(t, Draw(&said, out, drawing(text)))
		require.Equal(t, "\nPicture: "+out+"\n", said.String())
		require.ErrorIs(t, Draw(&said, out, fails), failed)
		got, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
}

func TestPictureThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	unmeasured := func() (func(io.Writer) error, error) { panic("it is known before") }
	err := Draw(io.Discard, dir, unmeasured)
	require.ErrorContains(t, err, "can't write the picture: open "+dir)
	require.NotContains(t, err.Error(), "\n")
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, Draw(io.Discard, filepath.Join(file, "picture.png"), unmeasured), file)
}
