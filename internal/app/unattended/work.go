package unattended

import (
	"context"
	"runtime"

	"github.com/kardianos/service"
)

// work is what a service does, as the system's manager starts and stops it.
type work struct {
	run       func(ctx context.Context, arguments []string) error
	ctx       context.Context //nolint:containedctx // the manager's calls carry none
	cancel    context.CancelFunc
	arguments []string
	done      chan struct{}
	err       error // once done is closed
}

func (w *work) begin(ctx context.Context, arguments []string) {
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.arguments, w.done = arguments, make(chan struct{})
}

// Start begins to work; the manager waits for its return.
func (w *work) Start(s service.Service) error {
	go func() {
		w.err = w.run(w.ctx, w.arguments)
		close(w.done)
		if runtime.GOOS == "windows" && !service.Interactive() {
			_ = s.Stop() // Run returns when the manager says so, and not before
		}
	}()
	return nil
}

// Stop ends the work: the device leaves, and the account is closed.
func (w *work) Stop(service.Service) error {
	w.cancel()
	<-w.done
	return nil
}

// wait is until the work has ended or is to end, where the manager sends signals.
func (w *work) wait() {
	select {
	case <-w.done:
	case <-w.ctx.Done():
	}
}

func (w *work) end() error {
	<-w.done
	return w.err
}
