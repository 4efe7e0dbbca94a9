package admin

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/secretfile"
	"github.com/starling-fl/starling/internal/app/usage"
)

// remote is a fleet over the admin address of a coordinator: its requests are those of
// GET /v1/openapi.json.
type remote struct {
	base   *url.URL
	token  string
	client *http.Client
}

const (
	remoteTimeout = 30 * time.Second
	mostAnswered  = 256 << 20 // bytes of an answer; a million devices are 200 MB
	mostComplaint = 1000      // bytes that are shown of why not
)

// dial reads the token's file; the token goes to that address alone.
func dial(address, file string) (*remote, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, usage.Errorf("--server is %.200q, want an address as https://host:port", address)
	}
	if u.Scheme == "http" && !thisMachine(u.Hostname()) {
		return nil, usage.Errorf("--server %s is another machine, and http is not encrypted: anyone on the way would have the token. "+
			"Use https, or a tunnel to this machine", u.Host)
	}
	token, err := secretfile.Read(file)
	if err != nil {
		return nil, fmt.Errorf("--token-file: want the one line that starling operator add printed, or an ID token of the server's OpenID issuer: %w", err)
	}
	return &remote{base: u, token: token, client: newClient()}, nil
}

// newClient follows no redirect: the token is for one address.
func newClient() *http.Client {
	return &http.Client{Timeout: remoteTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// thisMachine reports whether a host can be no other than this one.
func thisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Close ends it.
func (r *remote) Close() error {
	r.client.CloseIdleConnections()
	return nil
}

// ask sends a request, with JSON where there is something to say, and reads JSON.
func (r *remote) ask(method string, path []string, say, into any) error {
	return r.send(method, append([]string{"v1", "admin"}, path...), say, into, http.StatusOK)
}

// send is ask of any path, for which the coordinator answers one of the codes.
func (r *remote) send(method string, path []string, say, into any, codes ...int) error {
	var body io.Reader
	if say != nil {
		b, err := json.Marshal(say)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	for i, p := range path {
		path[i] = url.PathEscape(p)
	}
	req, err := http.NewRequest(method, r.base.JoinPath(path...).String(), body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	res, err := r.client.Do(req)
	if err != nil {
		return fmt.Errorf("the coordinator at %s: %w", r.base.Host, err)
	}
	defer res.Body.Close()
	if !slices.Contains(codes, res.StatusCode) {
		why, err := io.ReadAll(io.LimitReader(res.Body, mostComplaint))
		return errors.Join(answerError{res.StatusCode, fmt.Sprintf("the coordinator at %s answers %s: %q", r.base.Host, res.Status, strings.TrimSpace(string(why)))}, err)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, mostAnswered)).Decode(into); err != nil {
		return fmt.Errorf("the coordinator at %s answers no JSON that this program knows (is it an admin address?): %w", r.base.Host, err)
	}
	return nil
}

// answerError is an answer of another code than was asked for.
type answerError struct {
	code int
	text string
}

func (e answerError) Error() string { return e.text }

func (r *remote) Devices() (d []store.Device, err error) {
	return d, r.ask("GET", []string{"devices.json"}, nil, &d)
}

// judge acts on the one device that begins with hexadecimal digits.
func (r *remote) judge(prefix, act string, say any) (string, error) {
	devices, err := r.Devices()
	if err != nil {
		return "", err
	}
	found := ""
	for _, d := range devices {
		if len(prefix) >= 8 && strings.HasPrefix(d.Identity, strings.ToLower(prefix)) {
			if found != "" {
				return "", fmt.Errorf("%w: several enrolled devices begin with %s", store.ErrUnknown, prefix)
			}
			found = d.Identity
		}
	}
	if found == "" {
		return "", fmt.Errorf("%w: no enrolled identity begins with %.70q (give at least 8 digits)", store.ErrUnknown, prefix)
	}
	var out struct {
		Identity string `json:"identity"`
	}
	return found, r.ask("POST", []string{"devices", found, act}, say, &out)
}

func (r *remote) Ban(prefix, reason string) (string, error) {
	return r.judge(prefix, "ban", map[string]string{"reason": reason})
}
func (r *remote) Pardon(prefix string) (string, error) { return r.judge(prefix, "pardon", nil) }
func (r *remote) Forget(prefix string) (string, error) { return r.judge(prefix, "forget", nil) }

func (r *remote) Reached() (string, error) {
	var in server.Reached
	return in.Token, r.ask("GET", []string{"reached.json"}, nil, &in)
}

func (r *remote) Invite(note string, uses int, life time.Duration) (store.Invitation, []byte, error) {
	var in server.Invited
	err := r.ask("POST", []string{"invitations"}, map[string]any{"note": note, "uses": uses, "seconds": int64(life / time.Second)}, &in)
	return in.Invitation, in.Secret, err
}

func (r *remote) Invitations() (i []store.Invitation, err error) {
	return i, r.ask("GET", []string{"invitations.json"}, nil, &i)
}

func (r *remote) Revoke(id int64) error {
	var out struct{}
	return r.ask("POST", []string{"invitations", strconv.FormatInt(id, 10), "revoke"}, nil, &out)
}

func (r *remote) AddOperator(name string, role store.Role, life time.Duration) (store.Operator, string, error) {
	var out server.Added
	err := r.ask("POST", []string{"operators"}, map[string]any{"name": name, "role": role, "seconds": int64(life / time.Second)}, &out)
	return out.Operator, out.Token, err
}

func (r *remote) Operators() (o []store.Operator, err error) {
	return o, r.ask("GET", []string{"operators.json"}, nil, &o)
}

func (r *remote) RevokeOperator(name string) error {
	var out struct{}
	return r.ask("POST", []string{"operators", name, "revoke"}, nil, &out)
}

func (r *remote) Acts() ([]store.Act, [32]byte, error) {
	var out server.Acts
	var head [32]byte
	if err := r.ask("GET", []string{"acts.json"}, nil, &out); err != nil {
		return nil, head, err
	}
	if n, err := hex.Decode(head[:], []byte(out.Head)); err != nil || n != len(head) {
		return nil, head, fmt.Errorf("the coordinator at %s sent the head %.70q, which is not a hash", r.base.Host, out.Head)
	}
	return out.Acts, head, nil
}

func (r *remote) Jobs() (out []server.JobLine, err error) {
	return out, r.ask("GET", []string{"jobs.json"}, nil, &out)
}

func (r *remote) Spending() (out server.Ledger, err error) {
	return out, r.ask("GET", []string{"spending.json"}, nil, &out)
}

func (r *remote) Submit(j store.Hosted) error {
	var out struct{}
	return r.ask("POST", []string{"jobs"}, server.Submitted{Name: j.Name, Pool: j.Pool, Priority: j.Priority, File: string(j.File)}, &out)
}

func (r *remote) Steer(name string, want store.Want, reason string) error {
	act := map[store.Want]string{store.WantPause: "pause", store.WantRun: "resume", store.WantStop: "stop", store.WantArchive: "archive"}[want]
	var out struct{}
	return r.ask("POST", []string{"jobs", name, act}, map[string]string{"reason": reason}, &out)
}

func (r *remote) Begin() (store.Beginning, error) {
	var out server.Begun
	err := r.ask("POST", []string{"job", "begin"}, map[string]string{}, &out)
	return out.Beginning, err
}
