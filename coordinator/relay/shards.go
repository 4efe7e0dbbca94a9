package relay

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/starling-fl/starling/secagg"
)

// Subjects of shards' masks.
const (
	masksSubject = "starling.masks"
	sumsPrefix   = "starling.sums."
	lenders      = "lenders" // the queue: each question reaches one of them
)

const (
	alone  = 2 * time.Second // nobody is asked so long after nobody was there
	unmet  = 5 * time.Second // or after one was there that did not answer
	sumPos = 4               // a message of a sum begins with where in its bytes it stands
)

var (
	errAlone   = errors.New("relay: no other process adds masks up")
	errRefused = errors.New("relay: the other process does not take such masks")
	errPlain   = errors.New("relay: NATS is reached without TLS, and masks are secret")
	errParts   = errors.New("relay: a sum came in parts that do not fit")
	errLarge   = errors.New("relay: NATS lets no message be so large")
)

// veiled reports whether nobody between this process and NATS reads what they say.
func veiled(nc *nats.Conn) bool {
	if _, err := nc.TLSConnectionState(); err == nil {
		return true
	}
	host, _, err := net.SplitHostPort(nc.ConnectedAddr())
	ip, bad := netip.ParseAddr(host)
	return err == nil && bad == nil && ip.IsLoopback()
}

// Lend adds masks up for whoever owns the jobs, until the function that it returns is called:
// on as many processors as this process may use. It keeps and writes nothing of them.
func Lend(nc *nats.Conn, log *slog.Logger) (end func(), err error) {
	if !veiled(nc) {
		return nil, errPlain
	}
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	ended := false // by mu: nothing is begun behind the wait for what was
	var work sync.WaitGroup
	sub, err := nc.QueueSubscribe(masksSubject, lenders, func(m *nats.Msg) {
		places <- struct{}{}
		mu.Lock()
		defer mu.Unlock()
		if ended {
			<-places
			clear(m.Data)
			return
		}
		work.Go(func() {
			defer func() { <-places }()
			if err := lend(nc, m); err != nil {
				log.Warn("masks were not added up", "error", err)
			}
		})
	})
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	return func() {
		_ = sub.Unsubscribe() // where there is no connection there is no subscription
		mu.Lock()
		ended = true
		mu.Unlock()
		work.Wait()
	}, nil
}

// lend answers one question: with a sum in messages of a chunk each, or with an empty one.
func lend(nc *nats.Conn, q *nats.Msg) error {
	defer clear(q.Data)
	if to, is := strings.CutPrefix(q.Reply, sumsPrefix); !is || !token.MatchString(to) {
		return errors.New("relay: masks came without a place for their sum")
	}
	if !veiled(nc) { // it was, and has been made again elsewhere
		return errors.Join(errPlain, q.Respond(nil))
	}
	var m secagg.Masks
	if err := m.UnmarshalBinary(q.Data); err != nil {
		return errors.Join(err, q.Respond(nil))
	}
	defer m.Erase()
	sum := m.Sum()
	defer clear(sum)
	packed := m.Pack(sum)
	defer clear(packed)
	most := int(min(chunk, nc.MaxPayload())) - sumPos
	for at := 0; at < len(packed); at += most {
		part := binary.BigEndian.AppendUint32(make([]byte, 0, sumPos+most), uint32(at))
		if err := q.Respond(append(part, packed[at:min(at+most, len(packed))]...)); err != nil {
			return fmt.Errorf("relay: %w", err)
		}
	}
	return nil
}

// Borrower has masks added up by processes that lend.
type Borrower struct {
	nc *nats.Conn

	mu    sync.Mutex
	until time.Time // guarded by mu: nobody is asked before
}

// Borrow asks over a connection. Nothing is asked before the first Sum.
func Borrow(nc *nats.Conn) *Borrower { return &Borrower{nc: nc} }

// Sum is m.Sum, made by another process. It fails at once where there is none, and where ctx
// ends before it has answered asks none for a while.
func (b *Borrower) Sum(ctx context.Context, m *secagg.Masks) ([]uint32, error) {
	b.mu.Lock()
	rests := time.Now().Before(b.until)
	b.mu.Unlock()
	switch {
	case rests:
		return nil, errAlone
	case !veiled(b.nc):
		return nil, errPlain
	}
	sum, err := b.ask(ctx, m)
	if err == nil || errors.Is(err, errLarge) {
		return sum, err
	}
	rest := alone
	if ctx.Err() != nil {
		rest = unmet
	}
	b.mu.Lock()
	b.until = time.Now().Add(rest)
	b.mu.Unlock()
	return nil, err
}

func (b *Borrower) ask(ctx context.Context, m *secagg.Masks) ([]uint32, error) {
	question, _ := m.AppendBinary(nil)
	defer clear(question)
	if int64(len(question)) > b.nc.MaxPayload() {
		return nil, errLarge
	}
	to := sumsPrefix + rand.Text()
	sub, err := b.nc.SubscribeSync(to)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // else the connection is gone, and it with it
	if err := b.nc.PublishRequest(masksSubject, to, question); err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	packed := make([]byte, 0, m.PackedSize())
	defer clear(packed[:cap(packed)])
	for len(packed) < cap(packed) {
		part, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return nil, errAlone
		case err != nil:
			return nil, fmt.Errorf("relay: %w", err)
		case len(part.Data) == 0:
			return nil, errRefused
		case len(part.Data) <= sumPos, int64(binary.BigEndian.Uint32(part.Data)) != int64(len(packed)),
			len(packed)+len(part.Data)-sumPos > cap(packed):
			return nil, errParts
		}
		packed = append(packed, part.Data[sumPos:]...)
		clear(part.Data)
	}
	return m.Unpack(packed)
}
