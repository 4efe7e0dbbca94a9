package spans

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// lines is a log whose lines are awaited.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
	more chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lines) has(t *testing.T, text string) {
	t.Helper()
	watchdog.Wait(t, text, func() {
		for {
			l.mu.Lock()
			is := strings.Contains(l.text.String(), text)
			l.mu.Unlock()
			if is {
				return
			}
			<-l.more
		}
	})
}

// TestCollectorIsAway: rounds go on where the collector hangs, refuses or is not there; it is
// said once, and once more when it is back, with how many were lost.
func TestCollectorIsAway(t *testing.T) {
	const key = "not for logs"
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=not%20for%20logs")
	hang, answer := make(chan struct{}), make(chan int, 1)
	taken := make(chan struct{}, 2*mostWaiting)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("X-Key") != key {
			t.Errorf("%s, %v", r.URL, err)
		}
		select {
		case status := <-answer:
			w.WriteHeader(status)
		case <-hang:
			taken <- struct{}{}
		}
	}))
	defer s.Close()
	log := &lines{more: make(chan struct{}, 1)}
	e, err := Open(s.URL, "1", slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	answer <- 503
	e.Round(time.Now()).Over(time.Now(), "", nil)
	log.has(t, "it answers 503")
	watchdog.Wait(t, "rounds beside a collector that hangs", func() {
		for range 2*mostWaiting + 1 {
			e.Round(time.Now()).Over(time.Now(), "", nil)
		}
	})
	close(hang)
	log.has(t, "takes traces again")
	e.Close()
	if n := strings.Count(log.text.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, &log.text)
	}
	// Beside those that waited one may have been on its way.
	if n := len(taken); n != mostWaiting && n != mostWaiting+1 || !strings.Contains(log.text.String(), fmt.Sprintf("lost=%d", 2*mostWaiting+2-n)) {
		t.Errorf("%d were taken:\n%s", n, &log.text)
	}
	if strings.Contains(log.text.String(), key) {
		t.Error("a header is in the log")
	}
}

// TestEndWithoutACollector: an end does not wait for one that hangs.
func TestEndWithoutACollector(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or who hangs up is not noticed
		<-r.Context().Done()
	}))
	defer s.Close()
	e, err := Open(s.URL, "1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for range mostWaiting {
		e.Round(time.Now()).Over(time.Now(), "it failed", nil)
	}
	watchdog.Wait(t, "the end", e.Close)
}

// TestOff: without a collector nothing is kept, and nothing allocated.
func TestOff(t *testing.T) {
	var e *Exporter
	now := time.Now()
	if n := testing.AllocsPerRun(10, func() {
		r := e.Round(now)
		r.Turn("keying", now)
		r.ShardTurn(0, "sharing", now)
		r.ShardOver(0, now, false, nil)
		r.Over(now, "", nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	e.Close()
}

// TestOpen: addresses of collectors, which have no secrets in them.
func TestOpen(t *testing.T) {
	for _, text := range []string{"", "127.0.0.1:4318", "ftp://host", "http://", "http://me:secret@host", "http://host/?key=secret", "http://host#a", "http://%zz"} {
		if e, err := Open(text, "1", nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
			e.Close()
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "secret")
	if _, err := Open("http://host", "1", nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("headers: %v", err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "")
	for text, url := range map[string]string{"http://host:4318": "http://host:4318/v1/traces", "https://host/": "https://host/v1/traces", "https://host/api/traces": "https://host/api/traces"} {
		e, err := Open(text, "1", nil)
		if err != nil || e.url != url {
			t.Errorf("%s: %v", text, err)
		}
		e.Close()
	}
}
