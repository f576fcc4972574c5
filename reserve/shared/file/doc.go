// Package file keeps limiters in a folder, for the processes and runs of programs on one machine, without a server.
//
//	store, err := file.Open("/var/lib/mytool/limits")
//	...
//	limiter, err := shared.NewIn(store, "api", reserve.Must(pace.Bursty(10)))
//
// All processes that open the folder share one limiter of each name. Its file is locked while a request is decided,
// not while a request waits. A killed process loses its promised permits.
//
// A file is never half-written; while it is cut off or damaged, requests fail with a *[CorruptError], or as
// [shared.FailOpen] or [shared.Local] say. A machine that loses its power may forget the permits of the last seconds:
// see [Durable].
//
// A file's name is the hash of its limiter's name, its mode 0600, its size a kilobyte or two. Open removes some files
// of limiters that have long been full.
//
// Locks are flock on Linux, macOS and the BSDs, LockFileEx on Windows. They are not reliable on network file systems:
// Linux and macOS refuse a folder there. The store's clock is the machine's. A clock that is set back, or a reboot,
// gives no permits and delays no request.
package file
