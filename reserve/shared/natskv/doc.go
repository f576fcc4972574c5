// Package natskv keeps limiters in a key-value bucket of NATS JetStream, for the processes and machines of a team that
// has NATS and no Redis.
//
//	js, err := jetstream.New(conn)
//	...
//	_, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "limits", TTL: 24 * time.Hour})
//	store, err := natskv.Open(js, "limits")
//	limiter, err := shared.NewIn(store, "api", reserve.Must(pace.Bursty(100)))
//
// # What is promised
//
// All processes that open the bucket share one limiter of each name. The arithmetic runs in Go. An update takes three
// requests. It reads the value, asks the stream's leader for the time, and writes the new value if the revision is
// still the one that was read. No lock is held, so a process that is killed, stopped or cut off keeps no other waiting.
// It loses the permits that it was promised and has not used.
//
// While there is no connection a request fails at once. If one breaks while a write is under way, it can't be known
// whether the write was done. The limiter counts its permits as perhaps charged, and does not write again. So no permit
// is granted twice or charged twice. A write that arrives late is done all the same, since JetStream knows no deadline.
// Then the permits of one list of requests are charged and lost.
//
// # The bucket
//
// The server is of version 2.10 or later, which tells the time. The bucket's TTL, if it has one, must be at least as
// long as a limiter needs to be full again. A limiter that is forgotten is full. Otherwise its requests fail with a
// *[TTLError]. Without a TTL the bucket keeps one value for each name that there ever was. A key of the bucket is the
// hash of the limiter's name, so no API key is stored.
//
// # How many processes
//
// A value is written if nobody else has written it since it was read. A process that lost a write waits for a random
// time before the next, and longer the more it loses. So 8 processes that are busy on one key try 1.2 to 1.4 times for
// a write that counts, and 32 about 1.8 times. They got 2,000 and 1,300 permits of 2,000 a second (BenchmarkCrowd, two
// processors, the server among them). Above some 30 processes on a hot key, use Redis. Callers of one process don't
// count.
//
// # Permissions
//
// A user needs to publish to $KV.limits.>, $JS.API.STREAM.INFO.KV_limits and $JS.API.DIRECT.GET.KV_limits.>, and to
// subscribe to its inbox.
package natskv
