package picture

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// A File is a picture's file, to be opened before the long run that the picture
// shows: if it can't be had, that should be known then. The old content stays until Save.
type File struct {
	file  *os.File
	fresh bool // it was not there before, and nothing has been saved in it
}

// Create opens the file of that name, and makes it and its directory if need be.
func Create(name string) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	_, err := os.Lstat(name)
	fresh := errors.Is(err, os.ErrNotExist)
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &File{file, fresh}, nil
}

// Save replaces what the file holds by what draw writes, unless draw fails.
func (f *File) Save(draw func(io.Writer) error) error {
	var picture bytes.Buffer
	if err := draw(&picture); err != nil {
		return err
	}
	if err := f.file.Truncate(0); err != nil {
		return err
	}
	f.fresh = false
	_, err := f.file.WriteAt(picture.Bytes(), 0)
	return err
}

// Close closes the file, and removes it if there is nothing in it.
func (f *File) Close() error {
	err := f.file.Close()
	if f.fresh {
		err = errors.Join(err, os.Remove(f.file.Name()))
	}
	return err
}
