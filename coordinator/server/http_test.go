package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

func TestBlobs(t *testing.T) {
	c, s := serve(t, tinyJob(3), Config{})
	defer c.Close()
	base, err := tinyBase(t).Blob()
	ok(t, err)
	get := func(path string, header ...string) *httptest.ResponseRecorder {
		return ask(s.Handler(), "GET", path, header...)
	}
	name := fmt.Sprintf("%s%x", wire.BlobPath, sha256.Sum256(base))
	w := get(name)
	if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), base) || w.Header().Get("ETag") != fmt.Sprintf("%q", name[len(wire.BlobPath):]) {
		t.Errorf("%d, %d bytes, %v", w.Code, w.Body.Len(), w.Header())
	}
	if w := get(name, "Range", "bytes=4-7"); w.Code != http.StatusPartialContent || !bytes.Equal(w.Body.Bytes(), base[4:8]) {
		t.Errorf("range: %d %q", w.Code, w.Body)
	}
	if w := get(name, "If-None-Match", w.Header().Get("ETag")); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("cached: %d", w.Code)
	}
	if w := get(wire.BlobPath + strings.Repeat("0", 64)); w.Code != http.StatusNotFound {
		t.Errorf("unknown: %d", w.Code)
	}
	for _, bad := range []string{"", "xyz", strings.ToUpper(name[len(wire.BlobPath):]), name[len(wire.BlobPath):] + "00"} {
		if w := get(wire.BlobPath + bad); w.Code != http.StatusBadRequest {
			t.Errorf("%q: %d", bad, w.Code)
		}
	}
	if w := ask(s.Handler(), "POST", name); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// A browser gets what is fetched once compressed, where that is shorter; who does
// not ask for it, resumes, or hashes what is stored gets it as it is.
func TestBlobsForBrowsers(t *testing.T) {
	c, s := serve(t, tinyJob(3), Config{})
	defer c.Close()
	base, err := tinyBase(t).Blob()
	ok(t, err)
	sum := sha256.Sum256(base)
	name := fmt.Sprintf("%s%x", wire.BlobPath, sum)
	s.gzipped.Store(sum, []byte("packed")) // whatever it compresses to
	get := func(header ...string) *httptest.ResponseRecorder { return ask(s.Handler(), "GET", name, header...) }
	if w := get("Accept-Encoding", "br, gzip;q=0.5"); w.Header().Get("Content-Encoding") != "gzip" || w.Body.String() != "packed" || w.Header().Get("Vary") != "Accept-Encoding" {
		t.Errorf("a browser gets %v, %d bytes", w.Header(), w.Body.Len())
	}
	for _, header := range [][]string{nil, {"Accept-Encoding", "gzip;q=0"}, {"Accept-Encoding", "identity"}} {
		if w := get(header...); w.Header().Get("Content-Encoding") != "" || !bytes.Equal(w.Body.Bytes(), base) {
			t.Errorf("%v: %v, %d bytes", header, w.Header(), w.Body.Len())
		}
	}
	if w := get("Accept-Encoding", "gzip", "Range", "bytes=4-7"); w.Code != http.StatusPartialContent || w.Header().Get("Content-Encoding") != "" || !bytes.Equal(w.Body.Bytes(), base[4:8]) {
		t.Errorf("a range: %d %v", w.Code, w.Header())
	}
	text := bytes.Repeat([]byte("local.get 0 "), 1000)
	z, err := gzip.NewReader(bytes.NewReader(s.packed([32]byte{1}, bytes.NewReader(text))))
	ok(t, err)
	if back, err := io.ReadAll(z); err != nil || !bytes.Equal(back, text) {
		t.Errorf("unpacked: %v", err)
	}
	noise := make([]byte, 1000)
	rand.Read(noise)
	if s.packed([32]byte{2}, bytes.NewReader(noise)) != nil {
		t.Error("noise is compressed")
	}
}

// publicKeys are all that a stranger is told of a job that has run; a new one is
// added here by somebody who has asked whether it counts devices.
var publicKeys = []string{"clip_norm", "delivered", "elapsed_ns", "job", "labels", "private", "rank", "round",
	"rounds", "state", "version"}

// keysOf are an object's keys, in order.
func keysOf(t *testing.T, object []byte) []string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(object, &m); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(m))
}

func TestOperatorsEndpoints(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "<title>Starling</title>")
	})
	c, s := serve(t, tinyJob(3), Config{Pages: pages, Version: "v0-test"})
	devices := httptest.NewServer(s.Handler())
	defer func() {
		devices.Close()
		ok(t, c.Close())
	}()
	token := s.Token(devices.URL, nil)
	play(t, c, token, 3)
	admin := httptest.NewServer(s.AdminHandler())
	defer admin.Close()
	get := func(path string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequest("GET", admin.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", "gzip")
		r.Header.Set("Authorization", "Bearer "+s.AdminToken())
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
	var p monitor.Status
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.State != monitor.StateFinished || p.Cohort != 3 || p.Job != "tiny" || p.Round != 2 || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("status %s, %v", body, err)
	}
	if res, body := get("/readyz"); res.StatusCode != http.StatusServiceUnavailable || body != "not ready\n" {
		t.Errorf("readyz of a job that is over: %s %q", res.Status, body)
	}
	if res, body := get("/v1/admin/ready.json"); res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, `{"name":"job","ok":false,"detail":"the job is over"}`) ||
		strings.Count(body, `"ok":false`) != 1 {
		t.Errorf("why it is not ready: %s %s", res.Status, body)
	}
	_, body = get("/metrics")
	for _, want := range []string{
		"starling_rounds_committed_total 2\n", "# TYPE starling_connected_devices gauge\n", "starling_devices_drawn_total 6\n",
		"starling_alarms_total 0\n", "starling_version 2\n", "starling_rounds_left 0\n", `starling_state{state="finished"} 1`,
		`starling_round_duration_seconds_count{outcome="released"} 2`, `starling_device_answer_seconds_count{turn="collecting"} 6`,
		`starling_turn_duration_seconds_count{turn="unmasking"} 2`, `starling_device_round_bytes_count{direction="up"} 2`,
		"starling_shard_devices_sum 6\n", `starling_build_info{version="v0-test"} 1`, "process_open_fds ", "go_goroutines ",
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
		s.AdminHandler().ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%s without the token: %d", path, w.Code)
		}
		w = httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		p = monitor.Status{}
		if path != "/v1/status" {
			if w.Code != http.StatusNotFound {
				t.Errorf("%s on the devices' listener: %d", path, w.Code)
			}
		} else if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.State != monitor.StateFinished || p.Enrolled != 0 || p.Cohort != 0 || p.BytesUp != 0 {
			t.Errorf("status for a device: %s, %v", w.Body, err)
		} else if got := keysOf(t, w.Body.Bytes()); !slices.Equal(got, publicKeys) {
			t.Errorf("a device's status says %q, may say %q", got, publicKeys)
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
	r, err := http.NewRequest("GET", devices.URL+wire.Path, nil)
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := join(ctx, t, token, 1)(); err != nil {
		t.Errorf("a late device: %v", err)
	}
}

// TestAboutFull: a page of a job that its light build cannot do is told so.
func TestAboutFull(t *testing.T) {
	j := tinyJob(3)
	j.Shard.Hybrid = true
	c, s := serve(t, j, Config{})
	var a coordinator.About
	if w := ask(s.Handler(), "GET", "/v1/job"); json.Unmarshal(w.Body.Bytes(), &a) != nil || !a.Full {
		t.Errorf("about %s", w.Body)
	}
	ok(t, c.Close())
}

// TestAbout: a visitor is told what the job will give when all its rounds are
// made, the same before, while and after they are.
func TestAbout(t *testing.T) {
	j, base := tinyJob(3), tinyBase(t)
	c, s := serve(t, j, Config{})
	core, err := core.New(j, base, nil)
	ok(t, err)
	about := func() (a coordinator.About) {
		t.Helper()
		if w := ask(s.Handler(), "GET", "/v1/job"); w.Code != 200 || json.Unmarshal(w.Body.Bytes(), &a) != nil {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return a
	}
	before, budget := about(), core.Budget()
	if w := ask(s.Handler(), "GET", "/v1/job/announced"); w.Code != 200 || fmt.Sprintf("%x", wire.TaskID(w.Body.Bytes())) != before.ID {
		t.Errorf("announced: %d, %d bytes", w.Code, w.Body.Len())
	}
	if r := before.Round; r.Batch != j.Training.Batch || r.Steps != j.Training.Steps || r.Down != 4*uint64(core.Layout().Size(slices.Max(core.Ranks()))) ||
		r.Up == 0 || r.Up >= r.Down {
		t.Errorf("a round is %+v", r)
	}
	if before.Job != "tiny" || before.Rounds != 2 || before.ShardFloor != 3 || before.Protects != "device" || !before.Private || before.Full {
		t.Errorf("about %+v", before)
	}
	g := before.Delivered
	if before.Simulated != nil {
		g = before.Simulated
	}
	if g == nil || g.Rounds != 2 || g.Epsilon <= 0.5*budget.Epsilon || g.Epsilon > budget.Epsilon || g.Delta != budget.Delta {
		t.Errorf("guarantee %+v for a budget of %+v", g, budget)
	}
	blob, err := base.Blob()
	ok(t, err)
	if before.BaseBytes != uint64(len(blob)) || before.NeedsSecret {
		t.Errorf("about %+v", before)
	}
	devices := httptest.NewServer(s.Handler())
	defer func() {
		devices.Close()
		ok(t, c.Close())
	}()
	play(t, c, s.Token(devices.URL, nil), 3)
	if after := about(); !reflect.DeepEqual(before, after) {
		t.Errorf("it changed: %+v, %+v", before, after)
	}
	// What was spent is what had been promised, within the spread of the ranks.
	if spent := c.Status().Delivered; spent == nil || spent.Epsilon > before.Delivered.Epsilon*(1+1e-9) {
		t.Errorf("spent %+v, promised %+v", spent, before.Delivered)
	}
}

// TestListen: plain only on loopback; with TLS the certificate is kept and is
// the one that the token pins; bytes are counted at the socket.
func TestListen(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0"} {
		if _, err := listen(t, addr, t.TempDir(), false); !errors.Is(err, ErrPlain) {
			t.Errorf("plain on %s: %v", addr, err)
		}
	}
	if _, err := listen(t, "nonsense", t.TempDir(), true); err == nil {
		t.Error("an address without a port was taken")
	}
	dir := t.TempDir()
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "tls.pem"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listen(t, "127.0.0.1:0", broken, true); err == nil {
		t.Error("a broken certificate was shown")
	}
	var pins [2][]byte
	for i := range pins {
		e, err := listen(t, "127.0.0.1:0", dir, true)
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

	c, s := serve(t, tinyJob(3), Config{})
	e, err := listen(t, "127.0.0.1:0", dir, true)
	ok(t, err)
	token := s.Token(e.URL, e.Pin)
	if _, err := wire.ParseToken(token); err != nil {
		t.Errorf("token: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, e) }()
	play(t, c, token, 3) // devices that check the pin
	cancel()
	if err := errors.Join(watchdog.Recv(t, "what Serve returns", served), c.Close()); err != nil {
		t.Error(err)
	}
	res := c.Result()
	// TLS and HTTP are counted, too: more than the messages alone.
	if res.BytesUp < 3*2000 || res.BytesDown < 3*2000 || res.BytesUpPerDeviceRound < 1000 {
		t.Errorf("bytes %d up, %d down", res.BytesUp, res.BytesDown)
	}
	// They are told apart by what they were for, and the parts are all of them.
	p := res.Parts
	base, err := tinyBase(t).Blob()
	ok(t, err)
	if least := int64(3 * len(base)); p.Base.Down < least || p.Base.Down > least+least/5+30_000 || p.Updates.Up <= 0 || p.Updates.Down != 0 ||
		p.Turns.Up <= 0 || p.Turns.Down <= 0 || p.Slices.Down <= 0 || p.Page.Down <= 0 {
		t.Errorf("parts %+v, the base has %d bytes", p, len(base))
	}
	up, down := int64(0), int64(0)
	for _, b := range []monitor.Bytes{p.Page, p.Base, p.Programs, p.Model, p.Slices, p.Turns, p.Updates, p.Rest} {
		if b.Up < 0 || b.Down < 0 {
			t.Errorf("parts %+v", p)
		}
		up, down = up+b.Up, down+b.Down
	}
	if up != res.BytesUp || down != res.BytesDown {
		t.Errorf("the parts make %d up and %d down, of %d and %d", up, down, res.BytesUp, res.BytesDown)
	}
	for _, r := range c.Rounds() {
		// A round's updates came in its own time.
		if n := int64(r.Cohort - r.Dropped - r.Absent); r.Parts.Updates.Up < n*(p.Updates.Up/n/int64(res.Rounds)-64) || r.Parts.Turns.Down <= 0 {
			t.Errorf("round %d: parts %+v of %+v", r.Round, r.Parts, p)
		}
	}
}

// What a device fetches once, the page and the base, is no round's traffic.
func TestFetchedOnceIsApart(t *testing.T) {
	for _, secure := range []bool{false, true} {
		dir := t.TempDir()
		page := bytes.Repeat([]byte("page "), 20_000)
		c, s := serve(t, tinyJob(3), Config{Pages: http.FileServerFS(fstest.MapFS{"index.html": {Data: page}})})
		e, err := listen(t, "127.0.0.1:0", dir, secure)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, e) }()
		base, err := tinyBase(t).Blob()
		ok(t, err)
		token, err := wire.ParseToken(s.Token(e.URL, e.Pin))
		ok(t, err)
		// One connection for all, as a device's.
		transport := &http.Transport{MaxConnsPerHost: 1, DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
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
		var often int64
		status := func() {
			for range 100 {
				often += get(e.URL + "/v1/status")
			}
		}
		status()
		once += get(token.BlobURL(sha256.Sum256(base)))
		status()
		transport.CloseIdleConnections()
		cancel()
		if err := watchdog.Recv(t, "what Serve returns", served); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		all, apart := int64(figure(t, c, "sent_bytes_total")), int64(figure(t, c, "sent_once_bytes_total"))
		// Each answer has a header, and a record of TLS, of its own.
		if apart < once || apart > once+once/10+8000 || all-apart < often || all-apart > often+200*600+8000 {
			t.Errorf("TLS %t: %d bytes apart for %d, %d others for %d", secure, apart, once, all-apart, often)
		}
		if up := figure(t, c, "received_once_bytes_total"); up <= 0 || up >= figure(t, c, "received_bytes_total") {
			t.Errorf("TLS %t: %v of %v bytes up", secure, up, figure(t, c, "received_bytes_total"))
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
				c, err := pinnedIn(dir)
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
	c, s := serve(t, tinyJob(3), Config{})
	s.Token("https://fl.example.org:8443", nil)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 2)
	for _, serve := range []func(context.Context, *Endpoint) error{s.Serve, s.ServeAdmin} {
		e, err := listen(t, "127.0.0.1:0", dir, false)
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
			machine() + ":9090": 200, machine() + ".evil.example": http.StatusMisdirectedRequest,
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
