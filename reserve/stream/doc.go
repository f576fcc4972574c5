// Package stream paces readers and writers, where a permit is a byte, and sequences, where each element has a cost.
//
//	limiter := reserve.Must(pace.NewBursty(1 << 20)) // 1 MiB a second
//	_, err := io.Copy(stream.Writer(ctx, conn, limiter), file)
//
// # How bytes are paced
//
// A Read or a Write is split into steps of at most a tenth of a second's worth and 32 KiB: at 100,000 bytes/s 10,000
// bytes, at 5 bytes/s one byte. From 32 MiB/s on a step is a millisecond's worth. Without limit a step is the whole
// buffer. The rate is that of the Reserver's method Rate() float64; without it a step is 4 KiB. A smaller window makes
// the steps smaller.
//
// Each step reserves, waits, reads or writes, and gives back unused permits. While a Read waits for its source, it
// holds its permits, so a Reader reserves at most an eighth more than the last Read gave: after 100 bytes 113, and so
// on until a Read is short again.
//
// # Sharing
//
// Streams share a limiter, or any [reserve.Reserver], by steps, so a stream that writes little at a time gets little.
// Of 32 writers at 1 MiB/s, eight of each size, those of 100 bytes together get 0.14 %, of 4 KiB 5.9 %, and of 32 KiB
// and of 1 MiB 47 % each. If that matters, put a bufio.Writer around each Writer, or give each stream its own limiter
// beside the common limiter (reserve.All).
//
// # Errors
//
// An error of the wrapped reader or writer is returned unchanged, with its bytes. If the context is done, its cause is
// returned, and if its deadline is too near, a *[reserve.WaitError]. Then that step reads or writes nothing: the
// context ends waits, not a Read or a Write that has begun.
//
// # Closing
//
// The results of Reader and Writer have no Close and buffer nothing: close the wrapped reader or writer. They are as
// safe for concurrent use as what they wrap, but a Write that is split is not atomic.
package stream
