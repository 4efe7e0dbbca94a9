package coordinator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/starling-fl/starling/internal/watchdog"
	"github.com/starling-fl/starling/internal/wire"
)

func TestBlobs(t *testing.T) {
	b := newBlobs()
	kept := b.keep([]byte("the base, which stays"))
	get := func(path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		return w
	}
	name := fmt.Sprintf("%s%x", wire.BlobPath, kept.SHA256)
	w := get(name)
	if w.Code != 200 || w.Body.String() != "the base, which stays" || w.Header().Get("ETag") != fmt.Sprintf("%q", fmt.Sprintf("%x", kept.SHA256)) {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
	if w := get(name, "Range", "bytes=4-7"); w.Code != http.StatusPartialContent || w.Body.String() != "base" {
		t.Errorf("range: %d %q", w.Code, w.Body)
	}
	if w := get(name, "If-None-Match", w.Header().Get("ETag")); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("cached: %d", w.Code)
	}
	if w := get(wire.BlobPath + strings.Repeat("0", 64)); w.Code != http.StatusNotFound {
		t.Errorf("unknown: %d", w.Code)
	}
	for _, bad := range []string{"", "xyz", strings.ToUpper(name[len(wire.BlobPath):]), "../../etc/passwd", name[len(wire.BlobPath):] + "00"} {
		if w := get(wire.BlobPath + bad); w.Code != http.StatusBadRequest {
			t.Errorf("%q: %d", bad, w.Code)
		}
	}
	post := httptest.NewRecorder()
	b.ServeHTTP(post, httptest.NewRequest("POST", name, strings.NewReader("x")))
	if post.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", post.Code)
	}
	// A round's blobs go after keptRounds more; the kept one stays even where a
	// round assigns the same bytes.
	first := b.assign([]byte("round 0"), []byte("the base, which stays"))
	for i := range keptRounds {
		if data, _ := b.get(first[0].SHA256); data == nil {
			t.Errorf("dropped after %d rounds", i)
		}
		b.assign(fmt.Appendf(nil, "round %d", i+1))
	}
	gone, _ := b.get(first[0].SHA256)
	if stays, _ := b.get(kept.SHA256); gone != nil || stays == nil {
		t.Error("the oldest round's slice is still there, or the base is gone")
	}
}

func TestOperatorsEndpoints(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "<title>Starling</title>")
	})
	tb := setTable(t, Config{Job: tinyJob(3), Pages: pages}, 3, nil)
	if err := runKeeping(tb); err != nil {
		t.Fatal(err)
	}
	defer func() {
		tb.server.Close()
		if err := tb.c.Close(); err != nil {
			t.Error(err)
		}
	}()
	admin := httptest.NewServer(tb.c.AdminHandler())
	defer admin.Close()
	get := func(path string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequest("GET", admin.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", "gzip")
		r.Header.Set("Authorization", "Bearer "+tb.c.AdminToken())
		res, err := httpClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(b)
	}
	if res, body := get("/healthz"); res.StatusCode != 200 || body != "ok\n" {
		t.Errorf("healthz: %s %q", res.Status, body)
	}
	res, body := get("/v1/status")
	var p Progress
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.State != StateFinished || p.Cohort != 3 || p.Job != "tiny" || p.Round != 2 || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("status %s, %v", body, err)
	}
	_, body = get("/metrics")
	for _, want := range []string{
		"starling_rounds_committed_total 2\n", "# TYPE starling_connected_devices gauge\n", "starling_devices_drawn_total 6\n",
		"starling_alarms_total 0\n", "starling_version 2\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %q:\n%s", want, body)
		}
	}
	for line := range strings.Lines(body) {
		var name string
		var v float64
		if n, err := fmt.Sscan(line, &name, &v); !strings.HasPrefix(line, "#") && (n != 2 || err != nil) {
			t.Errorf("metrics line %q", line)
		}
	}
	// Without the token there are no counts of devices, also not for a proxy on this
	// machine.
	for _, path := range []string{"/v1/status", "/metrics", "/v1/admin/ledger.json"} {
		r := httptest.NewRequest("GET", path, nil)
		r.RemoteAddr = "127.0.0.1:5"
		w := httptest.NewRecorder()
		tb.c.AdminHandler().ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%s without the token: %d", path, w.Code)
		}
		w = httptest.NewRecorder()
		tb.c.Handler().ServeHTTP(w, r)
		p = Progress{}
		if path != "/v1/status" {
			if w.Code != http.StatusNotFound {
				t.Errorf("%s on the devices' listener: %d", path, w.Code)
			}
		} else if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.State != StateFinished || p.Enrolled != 0 || p.Cohort != 0 || p.BytesUp != 0 {
			t.Errorf("status for a device: %s, %v", w.Body, err)
		}
		if w.Header().Get("X-Frame-Options") != "DENY" || !strings.Contains(w.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s may be framed: %v", path, w.Header())
		}
	}
	if _, body := get("/"); !strings.Contains(body, "Starling") {
		t.Errorf("/: %q", body)
	}
	if res, _ := get("/nothing"); res.StatusCode != http.StatusNotFound {
		t.Errorf("unknown file: %s", res.Status)
	}
	// A browser page of another origin may not open a device's socket.
	r, err := http.NewRequest("GET", tb.server.URL+wire.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Origin": "https://evil.example", "Connection": "Upgrade", "Upgrade": "websocket",
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
		r.Header.Set(k, v)
	}
	if res, err := httpClient.Do(r); err != nil || res.StatusCode != http.StatusForbidden {
		t.Errorf("another origin: %v, %v", res.Status, err)
	} else {
		res.Body.Close()
	}
	// Who comes when the job is over is told so.
	late := newPlayer(t, tb.token)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := late.run(ctx); err != nil || late.finished == nil || late.finished.Version != 2 {
		t.Errorf("a late device: %v, %+v", err, late.finished)
	}
}

// TestAbout: a visitor is told what the job will give when all its rounds are
// made, the same before, while and after they are.
func TestAbout(t *testing.T) {
	tb := setTable(t, Config{Job: tinyJob(3)}, 3, nil)
	ask := func(remote string) About {
		t.Helper()
		r := httptest.NewRequest("GET", "/v1/job", nil)
		r.RemoteAddr = remote
		w := httptest.NewRecorder()
		tb.c.Handler().ServeHTTP(w, r)
		var a About
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != 200 {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
		return a
	}
	before := ask("192.0.2.1:1")
	budget := tb.c.t.budget
	if before.Job != "tiny" || before.Rounds != 2 || before.ShardFloor != 3 || before.Protects != "device" || !before.Private {
		t.Errorf("about %+v", before)
	}
	g := before.Delivered
	if before.Simulated != nil {
		g = before.Simulated
	}
	if g == nil || g.Rounds != 2 || g.Epsilon <= 0.5*budget.Epsilon || g.Epsilon > budget.Epsilon || g.Delta != budget.Delta {
		t.Errorf("guarantee %+v for a budget of %+v", g, budget)
	}
	if before.BaseBytes != tb.c.t.baseRef.Size || before.NeedsSecret != (tb.c.t.job.Enrolment.Secret != "") {
		t.Errorf("about %+v", before)
	}
	if err := runKeeping(tb); err != nil {
		t.Fatal(err)
	}
	defer func() {
		tb.server.Close()
		if err := tb.c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if after := ask("192.0.2.1:1"); !reflect.DeepEqual(before, after) {
		t.Errorf("it changed: %+v, %+v", before, after)
	}
	// What was spent is what had been promised, within the spread of the ranks.
	if spent := tb.c.Status().Delivered; spent == nil || spent.Epsilon > before.Delivered.Epsilon*(1+1e-9) {
		t.Errorf("spent %+v, promised %+v", spent, before.Delivered)
	}
}

// runKeeping is run without closing the coordinator and its server.
func runKeeping(tb *table) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tb.errs = make([]error, len(tb.players))
	for i, p := range tb.players {
		tb.wg.Go(func() { tb.errs[i] = p.run(ctx) })
	}
	var err error
	watchdog.Wait(tb.t, "the job's end", func() { err = tb.c.Run(ctx) }, tb.sides()...)
	tb.played()
	return errors.Join(append(tb.errs, err)...)
}

// TestListen: plain only on loopback; with TLS the certificate is kept and is
// the one that the token pins; bytes are counted at the socket.
func TestListen(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0"} {
		if _, err := Listen(addr, t.TempDir(), false); !errors.Is(err, ErrPlain) {
			t.Errorf("plain on %s: %v", addr, err)
		}
	}
	if _, err := Listen("nonsense", t.TempDir(), true); err == nil {
		t.Error("an address without a port was taken")
	}
	dir := t.TempDir()
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "tls.pem"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("127.0.0.1:0", broken, true); err == nil {
		t.Error("a broken certificate was shown")
	}
	var pins [2][]byte
	for i := range pins {
		e, err := Listen("127.0.0.1:0", dir, true)
		if err != nil {
			t.Fatal(err)
		}
		pins[i] = e.Pin
		if err := e.Listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(pins[0], pins[1]) || len(pins[0]) != 32 {
		t.Errorf("pins %x and %x", pins[0], pins[1])
	}

	job := tinyJob(3)
	c, err := New(Config{Job: job, Dir: dir, Base: tinyBase(t), Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := Listen("127.0.0.1:0", dir, true)
	if err != nil {
		t.Fatal(err)
	}
	tb := &table{t: t, c: c, token: c.Token(e.URL, e.Pin)}
	if _, err := wire.ParseToken(tb.token.String()); err != nil {
		t.Errorf("token: %v", err)
	}
	pinned := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, // the pin is what is checked
		VerifyConnection: func(s tls.ConnectionState) error {
			if sum := sha256.Sum256(s.PeerCertificates[0].Raw); !bytes.Equal(sum[:], e.Pin) {
				return errors.New("another certificate")
			}
			return nil
		},
	}}}
	for range 3 {
		p := newPlayer(t, tb.token)
		p.http = pinned
		tb.players = append(tb.players, p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- c.Serve(ctx, e) }()
	if err := runKeeping(tb); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := errors.Join(watchdog.Recv(t, "what Serve returns", served, tb.sides()...), c.Close()); err != nil {
		t.Error(err)
	}
	res := c.Result()
	// TLS and HTTP are counted, too: more than the messages alone.
	if res.BytesUp < 3*2000 || res.BytesDown < 3*2000 || res.BytesUpPerDeviceRound < 1000 {
		t.Errorf("bytes %d up, %d down", res.BytesUp, res.BytesDown)
	}
}

// What a device fetches once, the page and the base, is no round's traffic.
func TestFetchedOnceIsApart(t *testing.T) {
	for _, secure := range []bool{false, true} {
		dir := t.TempDir()
		page := bytes.Repeat([]byte("page "), 20_000)
		c, err := New(Config{Job: tinyJob(3), Dir: dir, Base: tinyBase(t), Hosts: []string{},
			Pages: http.FileServerFS(fstest.MapFS{"index.html": {Data: page}})})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Listen("127.0.0.1:0", dir, secure)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- c.Serve(ctx, e) }()
		round := c.blobs.assign(bytes.Repeat([]byte("slice"), 30_000))[0]
		token := c.Token(e.URL, e.Pin)
		// One connection for all, as a device's.
		transport := &http.Transport{MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		get := func(url string) int64 {
			resp, err := (&http.Client{Transport: transport}).Get(url)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			n, err := io.Copy(io.Discard, resp.Body)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: %d, %v", url, resp.StatusCode, err)
			}
			return n
		}
		once := get(e.URL + "/")
		slice := get(token.BlobURL(round.SHA256))
		once += get(token.BlobURL(c.t.baseRef.SHA256))
		slice += get(token.BlobURL(round.SHA256))
		transport.CloseIdleConnections()
		cancel()
		if err := watchdog.Recv(t, "what Serve returns", served); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		all, apart := c.metrics.bytesDown.Load(), c.metrics.onceDown.Load()
		if apart < once || apart > once+once/10+8000 || all-apart < slice || all-apart > slice+slice/10+8000 {
			t.Errorf("TLS %t: %d bytes apart for %d, %d others for %d", secure, apart, once, all-apart, slice)
		}
		if up := c.metrics.onceUp.Load(); up <= 0 || up >= c.metrics.bytesUp.Load() {
			t.Errorf("TLS %t: %d of %d bytes up", secure, up, c.metrics.bytesUp.Load())
		}
	}
}

// TestCertificateOnce: of processes that start at once in a new folder all show
// the same certificate, and none reads half of another's.
func TestCertificateOnce(t *testing.T) {
	for range 20 {
		dir := filepath.Join(t.TempDir(), "new")
		certs := make([][]byte, 8)
		var all sync.WaitGroup
		for i := range certs {
			all.Go(func() {
				c, err := certificate(dir)
				if err != nil {
					t.Error(err)
					return
				}
				certs[i] = c.Certificate[0]
			})
		}
		all.Wait()
		for i, c := range certs {
			if !bytes.Equal(c, certs[0]) {
				t.Fatalf("certificates 0 and %d differ", i)
			}
		}
	}
}

// TestHostileNames: a page whose name was made to mean this machine, or of another
// origin, is answered on neither listener.
func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	c, err := New(Config{Job: tinyJob(3), Dir: dir, Base: tinyBase(t), Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	c.Token("https://fl.example.org:8443", nil)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 2)
	for _, serve := range []func(context.Context, *Endpoint) error{c.Serve, c.ServeAdmin} {
		e, err := Listen("127.0.0.1:0", dir, false)
		if err != nil {
			t.Fatal(err)
		}
		go func() { served <- serve(ctx, e) }()
		ask := func(host, origin string) int {
			r, err := http.NewRequest("GET", e.URL+"/healthz", nil)
			if err != nil {
				t.Fatal(err)
			}
			if host != "" {
				r.Host = host
			}
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
			res, err := httpClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			return res.StatusCode
		}
		for host, want := range map[string]int{
			"": 200, "localhost:5": 200, "[::1]:8080": 200, "192.0.2.7": 200, "FL.example.org:8443": 200,
			"evil.example": http.StatusMisdirectedRequest, "evil.example:80": http.StatusMisdirectedRequest,
			"127.0.0.1.evil.example": http.StatusMisdirectedRequest, "localhost.evil.example": http.StatusMisdirectedRequest,
		} {
			if got := ask(host, ""); got != want {
				t.Errorf("host %q: %d, want %d", host, got, want)
			}
		}
		for origin, want := range map[string]int{"https://fl.example.org:8443": 200, "https://evil.example": 403, "null": 403} {
			if got := ask("fl.example.org:8443", origin); got != want {
				t.Errorf("origin %q: %d, want %d", origin, got, want)
			}
		}
	}
	cancel()
	for range 2 {
		if err := watchdog.Recv(t, "what Serve returns", served); err != nil {
			t.Error(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
