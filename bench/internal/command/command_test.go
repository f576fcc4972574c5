package command

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDraw(t *testing.T) {
	out := filepath.Join(t.TempDir(), "picture.png")
	failed := errors.New("failed")
	var said strings.Builder
	require.ErrorIs(t, Draw(&said, out, func() (func(io.Writer) error, error) { return nil, failed }), failed)
	require.NoFileExists(t, out)
	draw := func(w io.Writer) error {
		_, err := io.WriteString(w, "a picture")
		return err
	}
	require.NoError(t, Draw(&said, out, func() (func(io.Writer) error, error) { return draw, nil }))
	require.FileExists(t, out)
	require.Equal(t, "\nPicture: "+out+"\n", said.String())
}

func TestPictureThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	err := Draw(io.Discard, dir, func() (func(io.Writer) error, error) { panic("it is known before") })
	require.ErrorContains(t, err, "can't write the picture: open "+dir)
	require.NotContains(t, err.Error(), "\n")
}
