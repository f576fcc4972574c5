package demo

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type outcome struct{ Outcome }

func (outcome) Row() []string { return []string{""} }

func TestPortThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	out := filepath.Join(t.TempDir(), "demo.png")
	err = Demo[http.Handler, outcome]{}.Run(context.Background(), l.Addr().String(), out)
	require.ErrorContains(t, err, "can't start the server: listen tcp "+l.Addr().String())
	require.NotContains(t, err.Error(), "\n")
	require.NoFileExists(t, out)
}

func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "demo.png")
	var halves []string
	d := Demo[http.Handler, outcome]{
		Server: http.NotFoundHandler,
		Intro:  func(string) string { return "" },
		Half: func(_ context.Context, name, url string, _ http.Handler) (outcome, error) {
			halves = append(halves, name)
			r, err := http.Get(url)
			if err == nil {
				err = r.Body.Close()
			}
			return outcome{}, err
		},
		Header: []string{""},
		Draw: func(w io.Writer, halves []outcome) error {
			require.Len(t, halves, 2)
			_, err := io.WriteString(w, "a picture")
			return err
		},
	}
	require.NoError(t, d.Run(context.Background(), "127.0.0.1:0", out))
	require.Equal(t, []string{Unpaced, Paced}, halves)
	require.FileExists(t, out)
}

func TestWork(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := Work(ctx, Paced, 1, []int{1, 2, 3, 4}, func(_ context.Context, job int) error {
		if job == 3 {
			cancel()
			return errors.New("failed")
		}
		return nil
	})
	require.Equal(t, 2, o.Answered)
	require.Equal(t, 1, o.Failed, "and the last one was not made")
	require.Equal(t, "stopped after 2.0 s", Outcome{Took: 2 * time.Second}.Time(true))
}

func TestCount(t *testing.T) {
	const ms = time.Millisecond
	all, answered := Count([]Call{{At: 0}, {At: 99 * ms, Refused: true}, {At: 250 * ms}}, 100*ms)
	require.Equal(t, []float64{2, 0, 1}, all)
	require.Equal(t, []float64{1, 0, 1}, answered)
}
