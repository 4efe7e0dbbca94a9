package queue

import (
	"context"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What a liar writes.
type (
	Item    = item
	Outcome = outcome
)

// Objects is the store of what items refer to.
func (b *Broker) Objects() jetstream.ObjectStore { return b.objects }

// Conn is the connection.
func (b *Broker) Conn() *nats.Conn { return b.conn }

// Run is the name of a reducer's run.
func (r *Reducer) Run() string { return r.run }

// Strange makes a broker forget the key of its runs.
func (b *Broker) Strange() { b.key = newKey() }

// Take takes an item from the queue.
func (b *Broker) Take(ctx context.Context) (jetstream.Msg, *Item, error) {
	c, err := b.js.CreateOrUpdateConsumer(ctx, itemsStream, jetstream.ConsumerConfig{
		Durable: workersName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute, MaxDeliver: -1, MaxAckPending: -1,
	})
	if err != nil {
		return nil, nil, err
	}
	m, err := c.Next(jetstream.FetchMaxWait(20 * time.Second))
	if err != nil {
		return nil, nil, err
	}
	data, err := b.unwrap(ctx, sealedItem, m.Data(), maxItem)
	if err != nil {
		return nil, nil, err
	}
	it, err := decodeItem(data)
	return m, it, err
}

// Answer publishes an outcome: sealed, or as bytes that nobody sealed.
func (b *Broker) Answer(ctx context.Context, run string, o *Outcome, sealed bool) error {
	data, err := b.wrap(ctx, sealedResult, o)
	if !sealed {
		data, err = cbor.Marshal(o)
		data = append([]byte{inline}, data...)
	}
	if err == nil {
		_, err = b.js.Publish(ctx, resultsPrefix+run, data)
	}
	return err
}

// Varints writes a sum.
func Varints(sum []int64) []byte { return varints(sum) }

// Fetch fetches from the store.
func (b *Broker) Fetch(ctx context.Context, sum [32]byte, most int64) ([]byte, error) {
	return b.get(ctx, b.objects, sum, most)
}
