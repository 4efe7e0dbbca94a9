package dp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrPoolClosed reports the use of a closed pool.
var ErrPoolClosed = errors.New("noise pool is closed")

// Pool draws noise of one variance ahead of its use, so that the time a
// release takes tells nothing of the values and the request path does not wait.
// What is taken is wiped from the pool and never handed out twice.
//
// Its methods may be called from several goroutines. One goroutine of its own
// refills it; Close waits for that goroutine.
type Pool struct {
	variance Variance
	sampler  *Sampler // owned by the refilling goroutine

	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	cond  *sync.Cond
	ring  []int64 // owned by mu: stock of samples
	start int     // owned by mu: first sample in stock
	stock int     // owned by mu
	err   error   // owned by mu: why refilling ended
}

// NewPool starts drawing noise of variance v until capacity samples (8 bytes
// each) are in stock, and keeps them so. rnd is owned by the pool from here on.
func NewPool(ctx context.Context, v Variance, capacity int, rnd io.Reader) (*Pool, error) {
	if capacity <= 0 {
		return nil, fmt.Errorf("dp: noise pool of %d samples, want at least 1", capacity)
	}
	if err := v.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &Pool{
		variance: v,
		sampler:  NewSampler(rnd),
		cancel:   cancel,
		done:     make(chan struct{}),
		ring:     make([]int64, capacity),
	}
	p.cond = sync.NewCond(&p.mu)
	context.AfterFunc(ctx, func() { p.fail(ErrPoolClosed) })
	go p.refill()
	return p, nil
}

// poolBatch is drawn between two looks at the lock.
const poolBatch = 4096

func (p *Pool) refill() {
	defer close(p.done)
	batch := make([]int64, min(poolBatch, len(p.ring)))
	defer clear(batch)
	for {
		p.mu.Lock()
		for p.err == nil && p.stock == len(p.ring) {
			p.cond.Wait()
		}
		room, err := len(p.ring)-p.stock, p.err
		p.mu.Unlock()
		if err != nil {
			return
		}
		b := batch[:min(len(batch), room)]
		if err := p.sampler.Sample(b, p.variance); err != nil {
			p.fail(err)
			return
		}
		p.mu.Lock()
		for _, x := range b {
			p.ring[(p.start+p.stock)%len(p.ring)] = x
			p.stock++
		}
		p.cond.Broadcast()
		p.mu.Unlock()
	}
}

// fail ends the pool; the first reason stays.
func (p *Pool) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	clear(p.ring)
	p.stock = 0
	p.cond.Broadcast()
}

// Ready returns how many samples are in stock.
func (p *Pool) Ready() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stock
}

// Variance returns the variance the pool draws.
func (p *Pool) Variance() Variance { return p.variance }

// AddNoise implements [Noise] for the pool's own variance. If the stock
// does not suffice it waits for the refill; a dst larger than the pool is served
// in parts.
func (p *Pool) AddNoise(dst []int64, v Variance) error {
	if v != p.variance {
		clear(dst)
		return fmt.Errorf("dp: noise pool holds variance %s, asked for %s: %w", p.variance, v, ErrVariance)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := 0; i < len(dst); {
		for p.err == nil && p.stock == 0 {
			p.cond.Wait()
		}
		if p.err != nil {
			clear(dst)
			return p.err
		}
		for ; i < len(dst) && p.stock > 0; i++ {
			x, err := addChecked(dst[i], p.ring[p.start])
			p.ring[p.start] = 0
			p.start = (p.start + 1) % len(p.ring)
			p.stock--
			if err != nil {
				clear(dst)
				return fmt.Errorf("dp: coordinate %d: %w", i, err)
			}
			dst[i] = x
		}
		p.cond.Broadcast()
	}
	return nil
}

// Close stops the pool, wipes its stock and waits for its goroutine.
func (p *Pool) Close() {
	p.cancel()
	p.fail(ErrPoolClosed)
	<-p.done
}
