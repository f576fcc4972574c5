// Package file keeps limiters in a folder, for the processes of one machine, and for programs that are started again and
// again. It needs no server.
//
//	store, err := file.Open("/var/lib/mytool/limits")
//	...
//	limiter, err := shared.NewIn(store, "api", reserve.Must(pace.Bursty(10)))
//
// All processes that open the folder share one limiter of each name. Its file is locked while a request is decided, and
// never while one waits. A process that is killed loses the permits that it was promised and has not used.
//
// A file is never half-written. One that was cut off or damaged is not believed: until it is removed, requests fail with
// a *[CorruptError], or are decided as [shared.FailOpen] or [shared.Local] say. Without [Durable], a machine that loses
// its power may forget the permits of the last seconds.
//
// A file's name is the hash of its limiter's name, its mode 0600, its size a kilobyte or two. Files whose states have
// expired (the limiter has long been full) are removed by the next processes that open the folder. Other files stay.
//
// Locks are flock on Linux, macOS and the BSDs, LockFileEx on Windows. Those of network file systems can't be relied on:
// Linux and macOS refuse a folder there; elsewhere do not use one. The store has no clock but the machine's. A clock
// that is set back, or a reboot, gives no permits and delays no request.
package file
