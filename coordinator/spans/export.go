package spans

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds of what waits for a collector, and of one exchange with it.
const (
	mostWaiting = 16 // rounds
	patience    = 10 * time.Second
	farewell    = 3 * time.Second
)

// Exporter sends rounds to a collector by OTLP over HTTP, as JSON.
type Exporter struct {
	url, version string
	headers      http.Header
	log          *slog.Logger
	client       *http.Client
	due          chan []span
	done         sync.WaitGroup
	cancel       context.CancelFunc

	mu   sync.Mutex
	lost int // guarded by mu: rounds, since the collector took one last
}

// Open starts sending to a collector's address, such as http://127.0.0.1:4318, whose path is
// /v1/traces if it has none. Headers come from OTEL_EXPORTER_OTLP_HEADERS, as key=value,key=value.
// Close stops it.
func Open(address, version string, log *slog.Logger) (*Exporter, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("want http://HOST:4318 or https://HOST/PATH, without credentials, which belong into OTEL_EXPORTER_OTLP_HEADERS")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	headers := http.Header{"Content-Type": {"application/json"}}
	for pair := range strings.SplitSeq(os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), ",") {
		key, text, is := strings.Cut(pair, "=")
		text, err := url.PathUnescape(strings.TrimSpace(text))
		if strings.TrimSpace(pair) == "" {
			continue
		}
		if !is || err != nil || strings.TrimSpace(key) == "" {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: want key=value,key=value, each value percent-encoded")
		}
		headers.Set(strings.TrimSpace(key), text)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &Exporter{url: u.String(), version: version, headers: headers, log: log, due: make(chan []span, mostWaiting), cancel: cancel,
		client: &http.Client{Timeout: patience, Transport: http.DefaultTransport.(*http.Transport).Clone(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}} // headers may be a secret
	e.done.Go(func() { e.run(ctx) })
	return e, nil
}

// send has a round sent, or counts it as lost where too many wait.
func (e *Exporter) send(round []span) {
	select {
	case e.due <- round:
	default:
		e.lose(errors.New("it is slower than rounds are"))
	}
}

// lose counts a round that was not sent, and says so of the first.
func (e *Exporter) lose(why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lost++; e.lost == 1 {
		e.log.Warn("a round's trace is lost, as others are until the collector takes one", "collector", e.url, "error", why)
	}
}

// Close sends what is waiting, for some seconds at most. Call it after the last round.
func (e *Exporter) Close() {
	if e == nil {
		return
	}
	close(e.due)
	late := time.AfterFunc(farewell, e.cancel)
	e.done.Wait()
	late.Stop()
	e.cancel()
	e.client.CloseIdleConnections()
}

func (e *Exporter) run(ctx context.Context) {
	for round := range e.due {
		if err := e.post(ctx, round); err != nil {
			e.lose(err)
			continue
		}
		e.mu.Lock()
		lost := e.lost
		e.lost = 0
		e.mu.Unlock()
		if lost > 0 {
			e.log.Info("the collector takes traces again", "collector", e.url, "lost", lost)
		}
	}
}

func (e *Exporter) post(ctx context.Context, round []span) error {
	about := Attributes{"service.name": "starling", "service.version": e.version}
	body, err := json.Marshal(request{[]resourceSpans{{resource{about.list()}, []scopeSpans{{scope{"starling"}, round}}}}})
	if err != nil {
		return fmt.Errorf("spans: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("spans: %w", err)
	}
	r.Header = e.headers.Clone()
	answer, err := e.client.Do(r)
	if err != nil {
		return fmt.Errorf("spans: %w", err)
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 64<<10) // so that the connection may be used again
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("it answers %d", answer.StatusCode)
	}
	return nil
}

type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name string `json:"name"`
	}
)

// list is the attributes in order: texts, and counts as OTLP's JSON has them.
func (a Attributes) list() (out []attribute) {
	for _, key := range slices.Sorted(maps.Keys(a)) {
		switch v := a[key].(type) {
		case string:
			out = append(out, attribute{key, value{Text: &v}})
		case int:
			text := strconv.Itoa(v)
			out = append(out, attribute{key, value{Count: &text}})
		}
	}
	return out
}
