package checkup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/accounts"
	"github.com/starling-fl/starling/internal/leaf/disk"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/wasm"
)

// Device lists the checks of a device.
type Device struct {
	Version string // of this program
	Token   string // of the coordinator that it is to reach; "": none is asked
	Policy  *edge.Policy
	Cache   string // folder; "": the default one
	Plain   bool   // a coordinator on another machine may be asked over http
	Data    string // file to train on; "": none is read
	Columns dataset.Columns
	Cores   int // 0: half of this machine's
	// Trial limits the time for which a step of the job runs, at least once; 0: not at all.
	Trial time.Duration
}

// Bounds within which nothing is said.
const (
	leastFree  = 1 << 30 // bytes, for a base and its programs
	mostSkew   = 2 * time.Minute
	endsSoon   = 14 * 24 * time.Hour
	askWithin  = 15 * time.Second
	slowAnswer = 2 * time.Second
)

// Run makes the checks. Failed checks are in the report; an error is ctx's alone.
func (d Device) Run(ctx context.Context) (*Report, error) {
	r := new(Report)
	r.Put("program", nil, "", "%s, %s/%s, %s", d.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	d.machine(r)
	if d.Data != "" {
		d.data(r)
	}
	if d.Token == "" {
		r.Add(Check{"coordinator", Unknown, "none was given", "give the join token or the address, to check the way there and what it asks for"})
		return r, ctx.Err()
	}
	if d.reach(ctx, r) {
		d.job(ctx, r)
	}
	return r, ctx.Err()
}

// machine looks at processor, memory and disk.
func (d Device) machine(r *Report) {
	if wasm.Fuses() {
		r.Put("processor", nil, "", "%d cores; it computes fused products (%s)", runtime.NumCPU(), wasm.FusedKernels()[0])
	} else {
		r.warn("processor", "ask the operator whether the job is of arithmetic exact", "%d cores, without fused multiply-add: jobs of training.arithmetic fused refuse it", runtime.NumCPU())
	}
	memory := edge.DefaultPolicy().Memory
	if d.Policy != nil {
		memory = d.Policy.Memory
	}
	switch total, err := totalMemory(); {
	case err != nil:
		r.Add(Check{"memory", Unknown, fmt.Sprintf("a training program may take %d MiB; how much there is, is not known here", memory), ""})
	case total < 2*uint64(memory)<<20:
		r.warn("memory", "lower memory in your policy, or close other programs", "%s in all, and a training program may take %d MiB", terminal.Bytes(int64(total)), memory)
	default:
		r.Put("memory", nil, "", "%s in all; a training program may take %d MiB", terminal.Bytes(int64(total)), memory)
	}
	cache, err := accounts.UserPath(d.Cache, os.UserCacheDir, "")
	if err == nil {
		err = os.MkdirAll(cache, 0o700)
	}
	var free uint64
	if err == nil {
		free, err = disk.Free(cache)
	}
	if err == nil && free < leastFree {
		err = fmt.Errorf("%s are free in %s: a base and its programs may take more", terminal.Bytes(int64(free)), cache)
	}
	r.Put("disk", err, "make room, or give another folder by --cache", "%s are free in %s", terminal.Bytes(int64(min(free, 1<<62))), cache)
}

// totalMemory is the machine's, where the system says it in a file.
func totalMemory() (uint64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if text, ok := strings.CutPrefix(s.Text(), "MemTotal:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("/proc/meminfo: %w", err)
			}
			return n << 10, nil
		}
	}
	return 0, errors.New("no MemTotal")
}

func (d Device) data(r *Report) {
	set, err := d.Columns.Load(d.Data)
	if r.Put("data", err, "see starling join --help for what a file may be", "") {
		r.Checks[len(r.Checks)-1].Detail = fmt.Sprintf("%s: %d examples, %d labels", filepath.Base(d.Data), len(set.Examples), len(set.Labels))
	}
}

// reach looks at the way to the coordinator: proxy, connection, TLS, clock and WebSocket.
func (d Device) reach(ctx context.Context, r *Report) bool {
	token, err := wire.ParseToken(d.Token)
	if !r.Put("token", err, "ask the operator for a new one", "it leads to %s", token.URL) {
		return false
	}
	client, err := edge.NewHTTPClient(d.Token, nil)
	if err != nil {
		return r.Put("token", err, "ask the operator for a new one", "")
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(token.URL, "/")+"/healthz", nil)
	if err != nil {
		return r.Put("network", err, "", "")
	}
	if proxy, err := http.ProxyFromEnvironment(req); err != nil || proxy != nil {
		name := ""
		if proxy != nil {
			name = proxy.Redacted()
		}
		r.Put("proxy", err, "mend HTTPS_PROXY, or name the host in NO_PROXY", "%s, by the environment: it has to pass WebSockets on", name)
	}
	began := time.Now()
	resp, err := client.Do(req)
	took := time.Since(began)
	if err != nil {
		next := "see whether the coordinator runs and whether a firewall is on the way"
		if errors.Is(err, edge.ErrPin) {
			next = "the certificate is another than the token's: the coordinator was moved, or somebody is on the way; ask the operator for a new token"
		}
		return r.Put("network", err, next, "")
	}
	_ = resp.Body.Close() // nothing of it is read
	if resp.StatusCode != http.StatusOK {
		return r.Put("network", fmt.Errorf("%s answers %s", token.URL, resp.Status), "see whether it is a Starling coordinator's address, with the path that a proxy serves it below", "")
	}
	if took > slowAnswer {
		r.warn("network", "", "%s answers after %v", token.URL, took.Round(time.Millisecond))
	} else {
		r.Put("network", nil, "", "%s answers after %v", token.URL, took.Round(time.Millisecond))
	}
	d.tls(r, token, resp)
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		if skew := time.Since(at).Round(time.Second); skew.Abs() > mostSkew {
			r.warn("clock", "set it, or let the system do so", "it is %v beside the coordinator's: certificates and invitations end by it", skew)
		} else {
			r.Put("clock", nil, "", "within %v of the coordinator's", mostSkew)
		}
	}
	conn, err := edge.DialSocket(ctx, d.Token, nil)
	if err == nil {
		err = conn.Close()
	}
	return r.Put("websocket", err, "a proxy on the way that passes no WebSockets on (Upgrade) prevents it", "it opens")
}

func (d Device) tls(r *Report, token wire.Token, resp *http.Response) {
	switch {
	case resp.TLS == nil && edge.OnLoopback(d.Token):
		r.Put("tls", nil, "", "none, and none is needed: the address is on this machine")
	case resp.TLS == nil && !d.Plain:
		r.Put("tls", errors.New("none: the network can read, and send another program"), "ask the operator for an https address (serve --tls)", "")
	case resp.TLS == nil:
		r.warn("tls", "", "none, as --allow-plain-http accepts")
	case len(token.Pin) > 0:
		r.Put("tls", nil, "", "the certificate is the one that the token pins")
	default:
		ends := resp.TLS.PeerCertificates[0].NotAfter
		if time.Until(ends) < endsSoon {
			r.warn("tls", "tell the operator", "the certificate ends %s", ends.UTC().Format(time.DateOnly))
		} else {
			r.Put("tls", nil, "", "the certificate is trusted here, and ends %s", ends.UTC().Format(time.DateOnly))
		}
	}
}

// job looks at what the job asks of this device.
func (d Device) job(ctx context.Context, r *Report) {
	cfg := edge.Config{Token: d.Token, Policy: d.Policy, AllowPlain: d.Plain}
	v, err := edge.AskLimits(ctx, cfg, 0)
	if !r.Put("job", err, "a coordinator of another version, or of several jobs: see starling join --fleet", "%q", v.Job) {
		return
	}
	if len(v.Beyond) == 0 {
		r.Put("policy", nil, "", "it asks for nothing beyond your limits, as far as shows without its base")
	}
	for _, b := range v.Beyond {
		r.warn("policy", fmt.Sprintf("join asks you, or accept it by %s", b.Flag()), "%s; your limit: %s", b.What, b.Want)
	}
	if d.Trial <= 0 {
		return
	}
	cores := d.Cores
	if cores == 0 {
		cores = max(1, runtime.GOMAXPROCS(0)/2)
	}
	q, err := edge.AskQuote(ctx, cfg, cores, d.Trial)
	r.Put("trial", err, "see starling bench --job", "a step takes %.2g s on %d cores and %s of memory, a round some %.2g s",
		q.Step, cores, terminal.Bytes(q.Memory), q.Work(q.Round.Batch*q.Round.Steps))
}
