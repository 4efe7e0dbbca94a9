package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Newest is the object that describes the last release. It is written after the release itself, so
// that what it names is complete.
const Newest = "checkpoint/starling.json"

// ReadNewest returns the description of the newest release, nil if there is none.
func (b *Bucket) ReadNewest(ctx context.Context) ([]byte, error) {
	var text bytes.Buffer
	err := b.get(ctx, Newest, mostSmall, &text, func(n int64) error {
		if n > mostSmall {
			return fmt.Errorf("%w: more than %d bytes", ErrContent, mostSmall)
		}
		return nil
	})
	if errors.Is(err, ErrAbsent) {
		return nil, nil
	}
	return text.Bytes(), err
}

// Releases stores releases in the bucket while rounds continue. If the bucket is slower than the
// rounds, only the newest release is stored; if it is unreachable, that one is stored later.
type Releases struct {
	b      *Bucket
	log    *slog.Logger
	due    chan release
	cancel context.CancelFunc
	done   sync.WaitGroup
}

type release struct {
	version int
	files   map[string][]byte
	about   []byte
}

// Releases starts storing releases; Close ends it.
func (b *Bucket) Releases(log *slog.Logger) *Releases {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Releases{b: b, log: log, due: make(chan release, 1), cancel: cancel}
	r.done.Go(func() { r.run(ctx) })
	return r
}

// Put queues a release, with its description about, and returns at once. Only one goroutine may
// call it, and Close after it.
func (r *Releases) Put(version int, files map[string][]byte, about []byte) {
	select {
	case <-r.due: // nobody needs that one any more
	default:
	}
	r.due <- release{version, files, about}
}

// Close waits until the last release is stored, or ctx is done.
func (r *Releases) Close(ctx context.Context) {
	close(r.due)
	stop := context.AfterFunc(ctx, r.cancel)
	r.done.Wait()
	stop()
	r.cancel()
}

func (r *Releases) run(ctx context.Context) {
	next, open := <-r.due
	for failures := 0; open; {
		err := r.put(ctx, next)
		if err == nil {
			r.log.Info("the release is in the bucket", "version", next.version, "bucket", r.b.String())
			failures = 0
			next, open = <-r.due
			continue
		}
		wait := min(time.Second<<min(failures, 6), time.Minute)
		failures++
		r.log.Error("the release could not be put into the bucket", "version", next.version, "failures", failures, "again_in", wait, "error", err)
		select {
		case <-ctx.Done():
			return
		case newer, more := <-r.due:
			if more {
				next = newer
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
		case <-time.After(wait):
		}
	}
}

// put writes the files, then what says that they are there.
func (r *Releases) put(ctx context.Context, one release) error {
	for _, name := range slices.Sorted(maps.Keys(one.files)) {
		if err := r.b.putSmall(ctx, fmt.Sprintf("checkpoint/%06d/%s", one.version, name), one.files[name]); err != nil {
			return err
		}
	}
	return r.b.putSmall(ctx, Newest, one.about)
}
