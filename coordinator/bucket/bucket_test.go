package bucket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

const secret = "not-for-logs-7c1f"

// open is a bucket that answers as f does.
func open(t *testing.T, f http.HandlerFunc) *Bucket {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		f(w, r)
	}))
	t.Cleanup(s.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "somebody")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	b, err := Open("s3://models/fleet/?region=eu-1&endpoint=" + s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func failure(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<Error><Code>%s</Code><Message>said the server</Message></Error>`, code)
}

// TestHostileBucket: whatever a bucket answers, what is not the content is an error that names
// the bucket, in bounded time and memory.
func TestHostileBucket(t *testing.T) {
	content := bytes.Repeat([]byte("weights "), 4096)
	sum := sha256.Sum256(content)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   error
		says   string
	}{
		"other content": {func(w http.ResponseWriter, _ *http.Request) { w.Write(bytes.ToUpper(content)) }, ErrContent, "Remove it"},
		"too short":     {func(w http.ResponseWriter, _ *http.Request) { w.Write(content[:100]) }, ErrContent, "100 bytes"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			w.Write(content[:5000])
		}, io.ErrUnexpectedEOF, "cut off after"},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(content); err != nil {
					return
				}
			}
		}, ErrContent, "want 32768"},
		"slow": {func(w http.ResponseWriter, r *http.Request) {
			for r.Method == http.MethodGet && r.Context().Err() == nil {
				if _, err := w.Write(content[:1]); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				time.Sleep(time.Millisecond)
			}
		}, nil, "takes longer than 1s"},
		"silent":          {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, nil, "takes longer than 1s"},
		"absent":          {func(w http.ResponseWriter, _ *http.Request) { failure(w, 404, "NoSuchKey") }, ErrAbsent, "blobs/"},
		"no bucket":       {func(w http.ResponseWriter, _ *http.Request) { failure(w, 404, "NoSuchBucket") }, nil, "correct --blobs"},
		"wrong key":       {func(w http.ResponseWriter, _ *http.Request) { failure(w, 403, "SignatureDoesNotMatch") }, nil, "s3:PutObject"},
		"broken":          {func(w http.ResponseWriter, _ *http.Request) { failure(w, 500, "InternalError") }, nil, "said the server"},
		"an error of 1 G": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403); io.CopyN(w, zeros{}, 1<<30) }, nil, ""},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again"+r.URL.Path, http.StatusTemporaryRedirect)
		}, nil, "models/fleet"},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body) // or the server does not notice who hangs up
				c.answer(w, r)
			})
			if b.patience = 20 * time.Second; strings.Contains(c.says, "longer than 1s") {
				b.patience = time.Second
			}
			var got bytes.Buffer
			var err error
			watchdog.Wait(t, name, func() { err = b.Fetch(t.Context(), sum, int64(len(content)), &got) })
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "s3://models/fleet at 127.0.0.1") {
				t.Errorf("fetched: %v", err)
			}
			if got.Len() > len(content)+1 {
				t.Errorf("%d bytes were taken of %d", got.Len(), len(content))
			}
			if err != nil && (strings.Contains(err.Error(), secret) || len(err.Error()) > 1000) {
				t.Errorf("an error of %d bytes, or with the secret: %.200s", len(err.Error()), err)
			}
			if name == "other content" || name == "endless" {
				return // who puts it does not look at what is there
			}
			watchdog.Wait(t, name, func() { err = b.Keep(t.Context(), sum, bytes.NewReader(content), int64(len(content))) })
			if says := name != "too short" && name != "cut off" && name != "slow"; err == nil && says { // those are headers of what was put
				t.Error("it was put")
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// memory is a bucket that keeps what is put, in order.
type memory struct {
	mu    sync.Mutex
	away  bool              // guarded by mu
	names []string          // guarded by mu
	data  map[string]string // guarded by mu
	told  chan string
}

func (m *memory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/models/fleet/")
	data, is := m.data[name]
	switch {
	case m.away:
		failure(w, 503, "SlowDown")
		return
	case r.Method == http.MethodPut:
		b, err := io.ReadAll(r.Body)
		if sum := fmt.Sprintf("%x", sha256.Sum256(b)); err != nil || r.Header.Get("X-Amz-Content-Sha256") != sum || !strings.Contains(r.Header.Get("Authorization"), "Credential=somebody/") {
			failure(w, 400, "XAmzContentSHA256Mismatch")
			return
		}
		m.data[name], m.names = string(b), append(m.names, name)
	case !is:
		failure(w, 404, "NoSuchKey")
		return
	}
	if r.Method != http.MethodPut {
		w.Write([]byte(data))
	}
	select {
	case m.told <- r.Method + " " + name:
	default:
	}
}

func (m *memory) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *memory) has(name string) (data string) {
	m.set(func() { data = m.data[name] })
	return data
}

// TestKeep: content is there under its hash once it was put, and is not put twice.
func TestKeep(t *testing.T) {
	m := &memory{data: map[string]string{}}
	b := open(t, m.ServeHTTP)
	content := []byte("weights")
	sum := sha256.Sum256(content)
	for range 2 {
		if err := b.Keep(t.Context(), sum, bytes.NewReader(content), int64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	var got bytes.Buffer
	if err := b.Fetch(t.Context(), sum, int64(len(content)), &got); err != nil || got.String() != "weights" {
		t.Errorf("%q, %v", &got, err)
	}
	name := fmt.Sprintf("blobs/%x", sum)
	m.set(func() {
		if !slices.Equal(m.names, []string{name}) {
			t.Errorf("put were %q, want %q", m.names, name)
		}
		m.data[name] = "part"
	})
	if err := b.Keep(t.Context(), sum, bytes.NewReader(content), int64(len(content))); err != nil || m.has(name) != "weights" {
		t.Errorf("what had another size is %q, %v", m.has(name), err)
	}
}

// TestReleases: a release's description is written behind its files; one that the bucket was
// away for comes later, unless a newer one does.
func TestReleases(t *testing.T) {
	m := &memory{data: map[string]string{}, away: true, told: make(chan string, 100)}
	b := open(t, m.ServeHTTP)
	if text, err := b.ReadNewest(t.Context()); err == nil {
		t.Fatalf("of a bucket that is away: %q", text)
	}
	var log bytes.Buffer
	r := b.Releases(slog.New(slog.NewTextHandler(&log, nil)))
	files := map[string][]byte{"a": []byte("1"), "b": []byte("2")}
	r.Put(1, files, []byte("one"))
	r.Put(2, files, []byte("two"))
	r.Put(3, files, []byte("three"))
	m.set(func() { m.away = false })
	watchdog.Wait(t, "the release", func() {
		for at := range m.told {
			if at == "PUT "+Newest && m.has(Newest) == "three" {
				return
			}
		}
	})
	r.Put(4, files, []byte("four"))
	r.Close(t.Context())
	text, err := b.ReadNewest(t.Context())
	if err != nil || string(text) != "four" {
		t.Errorf("the newest is %q, %v", text, err)
	}
	want := []string{"checkpoint/000004/a", "checkpoint/000004/b", Newest}
	var names []string
	m.set(func() { names, m.away = m.names, true })
	if n := len(names); n < 6 || !slices.Equal(names[n-3:], want) {
		t.Errorf("put were %q\n%s", names, &log)
	}
	r = b.Releases(slog.New(slog.DiscardHandler))
	r.Put(5, files, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	watchdog.Wait(t, "an end that does not wait", func() { r.Close(ctx) })
	m.set(func() { m.away, m.data[Newest] = false, strings.Repeat("x", mostSmall+1) })
	if text, err := b.ReadNewest(t.Context()); !errors.Is(err, ErrContent) {
		t.Errorf("a description of %d bytes: %v", len(text), err)
	}
}

// TestOpen: addresses, and where credentials are from.
func TestOpen(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "")
	if _, err := Open("s3://models"); !errors.Is(err, ErrURL) || !strings.Contains(err.Error(), "AWS_SECRET_ACCESS_KEY") {
		t.Errorf("without credentials: %v", err)
	}
	file := filepath.Join(t.TempDir(), "credentials")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	if err := os.WriteFile(file, []byte("# ours\n[default]\naws_access_key_id=b\n[fleet]\naws_access_key_id = a\naws_secret_access_key = "+secret+"=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("s3://models"); !errors.Is(err, ErrURL) || !strings.Contains(err.Error(), "AWS_SHARED_CREDENTIALS_FILE: profile has partial") {
		t.Errorf("half of the credentials: %v", err)
	}
	t.Setenv("AWS_PROFILE", "nobody")
	if _, err := Open("s3://models"); !errors.Is(err, ErrURL) || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("a profile that is absent: %v", err)
	}
	t.Setenv("AWS_PROFILE", "fleet")
	if c, err := findCredentials(); err != nil {
		t.Errorf("of the file: %v", err)
	} else if v, err := c.GetWithContext(nil); err != nil || v.AccessKeyID != "a" || v.SecretAccessKey != secret+"=" {
		t.Errorf("of the file: %v", err)
	}
	for text, at := range map[string]string{
		"s3://models":                                       "s3://models at s3.us-east-1.amazonaws.com",
		"s3://models/a/../b//c/?region=eu-1":                "s3://models/b/c at s3.eu-1.amazonaws.com",
		"s3://models/b?endpoint=http://store:9000/&region=": "s3://models/b at store:9000",
	} {
		if b, err := Open(text); err != nil || b.String() != at {
			t.Errorf("%s: %v, %v", text, b, err)
		}
	}
	for endpoint, clear := range map[string]bool{"https://store": false, "http://store": true, "http://10.0.0.1:9000": true, "http://127.0.0.1:9000": false, "http://localhost:9000": false, "http://[::1]": false} {
		if b, err := Open("s3://models?endpoint=" + endpoint); err != nil || b.InClear() != clear {
			t.Errorf("%s: %v, %v", endpoint, b.InClear(), err)
		}
	}
	for _, text := range []string{"", "models", "https://models", "s3://", "s3://a:" + secret + "@models", "s3://models?endpoint=store:9000", "s3://models?endpoint=ftp://store",
		"s3://models?endpoint=https://a:" + secret + "@store", "s3://models?endpoint=https://store/path", "s3://models?key=" + secret, "s3://models?region=eu.example.org/", "s3://Models", "s3://models:90", "s3://models#" + secret[:3], "s3://models?%zz", "s3://%zz"} {
		if _, err := Open(text); !errors.Is(err, ErrURL) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

type answering http.Response

func (a *answering) RoundTrip(*http.Request) (*http.Response, error) {
	copied := http.Response(*a)
	return &copied, nil
}

// TestErrorsAreShort: of an endless error a part is read; content is read whole.
func TestErrorsAreShort(t *testing.T) {
	for status, want := range map[int]int64{403: mostError, 500: mostError, 200: 10 * mostError} {
		answer, err := brief{&answering{StatusCode: status, Body: io.NopCloser(io.LimitReader(zeros{}, 10*mostError))}}.RoundTrip(nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, answer.Body); err != nil || n != want {
			t.Errorf("of an answer %d, %d bytes are read, want %d: %v", status, n, want, err)
		}
	}
}
