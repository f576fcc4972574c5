// Package stream paces readers and writers, where a permit is a byte, and sequences,
// where each element has a cost.
//
//	limiter := reserve.Must(pace.NewBursty(1 << 20)) // 1 MiB a second
//	_, err := io.Copy(stream.Writer(ctx, conn, limiter), file)
//
// Several streams may share one limiter: together they get its rate. Any
// [reserve.Reserver] will do: a key's limiter, a window, all of several.
//
// # How bytes are paced
//
// A Read or a Write of many bytes is split, so that no single step borrows more than
// a tenth of a second's worth of permits, and, below 32 MiB/s, no more than 32 KiB. At 100,000 bytes/s a step
// is 10,000 at most; at 5 bytes/s it is one byte. From 32 MiB/s on a step is a millisecond's worth
// (1 MiB at 1 GiB/s), so that a thousand steps a second are enough, and without limit it
// is the whole buffer. The rate is asked of the Reserver at each step, if that has a method
// Rate() float64 (a *reserve.Limiter has); of others 4 KiB are reserved at a time, a
// tenth of a second's worth at 40 KiB/s. A window that holds less than a step is asked for as much as it holds.
//
// Each step reserves, waits, then reads or writes, and gives back what it has not used:
// of 4096 permits for a Read that returns 100 bytes, 3996, which others use at once. The end of a
// source is a step, too: it is paid for, and given back, before it is known.
//
// While a Read waits for its source the permits of that step are taken, which is at most a tenth
// of a second of everybody else's. So that it is less where a source gives little at a time, a Reader asks
// for at most an eighth more than what it got the last time: after a Read of 100 bytes
// it reserves 100, then 113, and so on until a Read is short again.
//
// # Sharing
//
// Streams share a limiter by steps, not by bytes, because a limiter serves requests in turn. So a stream
// that writes little at a time gets little: of 32 writers at 1 MiB/s, eight of each size, those of
// 100 bytes get 0.14 % together, of 4 KiB 5.9 %, and of 32 KiB and of 1 MiB 46.9 % each. Where that
// matters put a bufio.Writer of the same size around each Writer, or give each stream a limiter of
// its own beside the common one (reserve.All).
//
// # Errors
//
// An error of the wrapped reader or writer comes back as it is, with the bytes that
// came with it. If the context is done its cause comes back, and if its deadline is too near
// a *[reserve.WaitError], before anything of that step is read or written. The context ends waits, not a
// Read or a Write that is under way.
//
// # Closing
//
// What Reader and Writer return has no Close: close what was wrapped. Neither holds bytes
// back, so there is nothing to flush. They allow as much concurrent use as what they wrap; but a Write that is split is no longer atomic.
package stream
