// Package stream paces readers and writers, where a permit is a byte, and sequences, where each element has a cost.
//
//	limiter := reserve.Must(pace.NewBursty(1 << 20)) // 1 MiB a second
//	_, err := io.Copy(stream.Writer(ctx, conn, limiter), file)
//
// Several streams may share a limiter: together they get its rate. Any [reserve.Reserver] will do: a key's limiter, a
// window, all of several.
//
// # How bytes are paced
//
// A Read or a Write is split into steps of at most a tenth of a second's worth and 32 KiB: at 100,000 bytes/s 10,000
// bytes, at 5 bytes/s one byte. From 32 MiB/s on a step is a millisecond's worth (1 MiB at 1 GiB/s). Without limit a
// step is the whole buffer. The rate is that of the Reserver's method Rate() float64, which *reserve.Limiter has. For
// other Reservers a step is 4 KiB. A window that holds less makes the steps as small.
//
// Each step reserves, waits, reads or writes, and gives back unused permits: a Read that returns 100 of 4096 bytes
// gives back 3996, and the Read that finds the end of a source all.
//
// While a Read waits for its source, it holds the permits of its step. So a Reader reserves at most an eighth more than
// the last Read gave: after 100 bytes 100, then 113, and so on until a Read is short again.
//
// # Sharing
//
// Streams share a limiter by steps, not by bytes. So a stream that writes little at a time gets little. Of 32 writers
// at 1 MiB/s, eight of each size, those of 100 bytes together get 0.14 %, of 4 KiB 5.9 %, and of 32 KiB and of 1 MiB 47
// % each. If that matters, put a bufio.Writer of the same size around each Writer, or give each stream its own limiter
// beside the common limiter (reserve.All).
//
// # Errors
//
// An error of the wrapped reader or writer is returned unchanged, with its bytes. If the context is done, its cause is
// returned, and if its deadline is too near, a *[reserve.WaitError]. Then that step reads or writes nothing. The
// context ends waits, not a Read or a Write that has begun. For a nil argument Reader, Writer and Seq panic with a
// *[reserve.ValueError].
//
// # Closing
//
// The results of Reader and Writer have no Close and buffer nothing: close the wrapped reader or writer. They are as
// safe for concurrent use as what they wrap, but a Write that is split is not atomic.
package stream
