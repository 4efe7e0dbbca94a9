package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/starling-fl/starling/coordinator/natsaccess"
	"github.com/starling-fl/starling/lab/natsserver"
)

// Broker is a connection to a NATS cluster, or to one in this process.
type Broker struct {
	// URL is what workers are given, the runs' key with it; empty if the server does not
	// listen.
	URL string

	conn    *nats.Conn
	js      jetstream.JetStream
	key     key
	objects jetstream.ObjectStore // written by simulations
	sums    jetstream.ObjectStore // written by workers
	alive   jetstream.KeyValue
	server  natsaccess.Server // ours; nil for a cluster
}

// Names of what is kept in JetStream.
const (
	itemsStream   = "STARLING_ITEMS"
	itemsSubject  = "starling.items"
	resultsStream = "STARLING_RESULTS"
	resultsPrefix = "starling.results."
	blobsBucket   = "starling-blobs"
	sumsBucket    = "starling-sums"
	runsBucket    = "starling-runs"
	workersName   = "workers" // of the durable consumer
)

const (
	keepBlobs   = 24 * time.Hour
	keepResults = time.Hour
	aliveFor    = time.Minute // a run that has not said so for this long is dead
	startup     = 15 * time.Second
)

// Embed starts a NATS server in this process that keeps its state in a folder.
// listen is a host:port that workers of other processes reach, with a name and
// a password in the URL that let them do what workers do, and the runs' key; empty lets nobody in but this process.
func Embed(ctx context.Context, dir, listen string) (_ *Broker, err error) {
	b := &Broker{key: newKey()}
	own, worker := users()
	if b.server, err = natsserver.Start(natsaccess.Serving{Listen: listen, Users: []natsaccess.User{own, worker}, MaxPayload: 8 << 20, Dir: dir}); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if listen != "" {
		b.URL = b.key.on(fmt.Sprintf("nats://%s:%s@%s", worker.Name, worker.Password, b.server.Addr()))
	}
	if b.conn, err = nats.Connect("", nats.InProcessServer(b.server), nats.Name("starling"), nats.UserInfo(own.Name, own.Password)); err != nil {
		return b, fmt.Errorf("queue: embedded server: %w", err)
	}
	return b, b.prepare(ctx)
}

// Connect reaches a cluster to hand rounds to its workers, and makes what they need there.
// It goes on reconnecting once it was there. If the URL holds no key of its runs, they
// have a new one: see Broker.URL.
func Connect(ctx context.Context, url string, a Access) (*Broker, error) {
	b, given, err := dial(url, a)
	if err != nil {
		return nil, err
	}
	if !given {
		b.key = newKey()
	}
	b.URL = b.key.on(b.URL)
	if err := b.prepare(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// ConnectWorker reaches a cluster, or another process's embedded server, to work there. It
// waits until a simulation was there. The URL holds the key of its runs.
func ConnectWorker(ctx context.Context, url string, a Access) (*Broker, error) {
	b, given, err := dial(url, a)
	if err == nil && !given {
		err = errors.Join(errors.New("queue: the URL has no key: take the whole URL that starling simulate prints, with the # and the key behind it"), b.Close())
	}
	if err != nil {
		return nil, err
	}
	for {
		err := b.find(ctx)
		if err == nil {
			return b, nil
		}
		if !errors.Is(err, jetstream.ErrBucketNotFound) {
			return nil, errors.Join(err, b.Close())
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), b.Close())
		}
	}
}

// dial connects; URL is the address alone.
func dial(url string, a Access) (_ *Broker, given bool, err error) {
	b := &Broker{}
	if b.URL, b.key, given, err = cutKey(url); err != nil {
		return nil, given, err
	}
	options, err := a.Options()
	if err != nil {
		return nil, given, fmt.Errorf("queue: %w", err)
	}
	options = append(options, nats.Name("starling"), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(false), nats.Timeout(startup))
	if b.conn, err = nats.Connect(b.URL, options...); err != nil {
		return nil, given, fmt.Errorf("queue: cannot reach NATS: %w", err)
	}
	return b, given, nil
}

// find opens what a simulation made.
func (b *Broker) find(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	fail := func(err error) error { return fmt.Errorf("queue: JetStream: %w", err) }
	if b.js, err = jetstream.New(b.conn); err != nil {
		return fail(err)
	}
	if b.objects, err = b.js.ObjectStore(ctx, blobsBucket); err != nil {
		return fail(err)
	}
	if b.sums, err = b.js.ObjectStore(ctx, sumsBucket); err != nil {
		return fail(err)
	}
	if b.alive, err = b.js.KeyValue(ctx, runsBucket); err != nil {
		return fail(err)
	}
	return nil
}

// prepare makes streams and buckets if there are none.
func (b *Broker) prepare(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	fail := func(err error) error { return fmt.Errorf("queue: JetStream: %w", err) }
	if b.js, err = jetstream.New(b.conn); err != nil {
		return fail(err)
	}
	if _, err = b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: itemsStream, Subjects: []string{itemsSubject}, Retention: jetstream.WorkQueuePolicy, MaxAge: keepBlobs,
	}); err != nil {
		return fail(err)
	}
	if _, err = b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: resultsStream, Subjects: []string{resultsPrefix + ">"}, MaxAge: keepResults,
	}); err != nil {
		return fail(err)
	}
	if b.objects, err = b.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: blobsBucket, TTL: keepBlobs}); err != nil {
		return fail(err)
	}
	if b.sums, err = b.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: sumsBucket, TTL: keepResults}); err != nil {
		return fail(err)
	}
	if b.alive, err = b.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: runsBucket, TTL: aliveFor}); err != nil {
		return fail(err)
	}
	return nil
}

// Close ends the connection, and the server where it is ours.
func (b *Broker) Close() error {
	if b.conn != nil {
		b.conn.Close()
	}
	if b.server != nil {
		b.server.Close()
	}
	return nil
}
