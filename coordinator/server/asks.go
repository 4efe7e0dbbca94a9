package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/job/statement"
	"github.com/starling-fl/starling/job/statement/wellknown"
)

// askAgain is how long a domain that did not answer, or named another key, is left alone.
const askAgain = 5 * time.Minute

// asks holds a job's statement of who asks against its domain. A page says what its coordinator says: so this spares an
// owner's browser the question, and proves nothing of a coordinator that lies. Programs ask the domain themselves.
type asks struct {
	client *http.Client
	log    *slog.Logger

	mu    sync.Mutex
	last  time.Time // by mu; of the last question
	holds bool      // by mu
}

// verified asks the domain, at the first call and then again from time to time until it confirms the statement. While
// one call asks, others do not wait.
func (a *asks) verified(ctx context.Context, job string, of *statement.Statement) bool {
	if of == nil || of.Signature == "" || !a.mu.TryLock() {
		return false
	}
	defer a.mu.Unlock()
	if a.holds || !a.last.IsZero() && time.Since(a.last) < askAgain {
		return a.holds
	}
	a.last = time.Now()
	err := wellknown.Verify(ctx, a.client, *of, job, of.Address)
	if a.holds = err == nil; err != nil {
		a.log.Warn("the statement of who asks is shown as not verified", "error", err)
	}
	return a.holds
}

// described is a job's description as it is served, without and with a verified statement of who asks.
type described struct {
	job             string
	asks            *statement.Statement
	plain, verified []byte
}

func describe(a coordinator.About) (d described, err error) {
	d = described{job: a.Job, asks: a.Asks}
	if d.plain, err = json.Marshal(a); err != nil {
		return d, err
	}
	a.Verified = true
	d.verified, err = json.Marshal(a)
	return d, err
}
