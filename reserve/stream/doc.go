// Package stream paces readers and writers, where a permit is a byte, and sequences, where each element has a cost.
//
//	limiter := reserve.Must(pace.NewBursty(1 << 20)) // 1 MiB a second
//	_, err := io.Copy(stream.Writer(ctx, conn, limiter), file)
//
// Several streams may share one limiter: together they get its rate. Any [reserve.Reserver] will do: a key's limiter, a
// window, all of several.
//
// # How bytes are paced
//
// A Read or a Write of many bytes is split into steps of at most a tenth of a second's worth and 32 KiB: at 100,000
// bytes/s 10,000 bytes, at 5 bytes/s one byte. From 32 MiB/s on a step is a millisecond's worth (1 MiB at 1 GiB/s).
// Without limit a step is the whole buffer. A step asks the Reserver for its rate by a method Rate() float64, which
// *reserve.Limiter has. For other Reservers a step is 4 KiB. A window that holds less makes the steps as small.
//
// Each step reserves, waits, reads or writes, and gives back the permits that it has not used: a Read that returns 100
// of 4096 bytes gives back 3996. The Read that finds the end of a source is paid for and given back, too.
//
// While a Read waits for its source, it holds the permits of its step. To hold less where a source gives little at a
// time, a Reader reserves at most an eighth more than the last Read gave: after 100 bytes 100, then 113, and so on
// until a Read is short again.
//
// # Sharing
//
// Streams share a limiter by steps, not by bytes. So a stream that writes little at a time gets little. Take 32 writers
// at 1 MiB/s, eight of each size. Together the writers of 100 bytes get 0.14 %, of 4 KiB 5.9 %, and of 32 KiB and of 1
// MiB 47 % each. If that matters, put a bufio.Writer of the same size around each Writer, or give each stream a limiter
// of its own beside the common limiter (reserve.All).
//
// # Errors
//
// An error of the wrapped reader or writer is returned unchanged, with the bytes that came with it. If the context is
// done, its cause is returned. If its deadline is too near, a *[reserve.WaitError] is. Nothing of that step is read or
// written then. The context ends waits, not a Read or a Write that has begun.
//
// # Closing
//
// The results of Reader and Writer have no Close and buffer nothing: close the wrapped reader or writer. They are as
// safe for concurrent use as what they wrap, but a Write that is split is not atomic.
//
// # Nil arguments
//
// A nil context, reader, writer, sequence or Reserver is a mistake in the program: Reader, Writer and Seq panic with a
// *[reserve.ValueError].
package stream
