// Package file keeps limiters in a folder, for the processes of one machine that share them, and for programs that are
// started again and again. It needs no server.
//
//	store, err := file.Open("/var/lib/mytool/limits")
//	...
//	limiter, err := shared.NewIn(store, "api", reserve.Must(pace.Bursty(10)))
//
// # What is promised
//
// All processes that open the folder share one limiter of each name. A limiter's file is locked while a
// request is decided, and never while one waits. A process that is killed loses the permits that it was
// promised and has not used, and nothing else: the operating system ends its lock.
//
// A file is never half-written: a new state is written beside the old one, and then one sector of the file says which
// counts. A file that was cut off or damaged is not believed. Until it is removed, requests for its limiter fail with a
// *[CorruptError] that names it, or are decided as [shared.FailOpen] or [shared.Local] say. Removing a limiter's file
// starts the limiter anew.
//
// Without [Durable] a state is safe from a process that is killed, but not from a machine that loses its power. The
// file may then have the state of some seconds before, in which the last permits were not used yet.
//
// # Files
//
// A file has the name of its limiter's hash, so that no API key is seen in a listing, and the mode 0600. It
// takes a kilobyte or two. Files whose states have expired (the limiter has long been full) are removed by the
// next processes that open the folder.
//
// Locks are the operating system's: flock on Linux, macOS and the BSDs, LockFileEx on Windows. Those of network file
// systems can't be relied on. So a folder on NFS or SMB is refused where the system tells (Linux, macOS). Elsewhere do
// not use one.
//
// # Time
//
// The store has no clock but the machine's. A clock that is set back, or a reboot, gives no permits and keeps no
// request waiting: see package shared.
package file
