package admin

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// AddressFile is the file in a coordinator's folder that holds its admin address, where serve chose the port.
const AddressFile = "admin"

// Desk reads what a running coordinator shows its operator.
type Desk struct{ r *remote }

// ErrNotRunning is a folder in which no coordinator answers.
var ErrNotRunning = errors.New("no coordinator answers")

// Desk opens the desk of a coordinator that runs. Of one in a folder on this machine it takes address and token from
// there; the error is ErrNotRunning if it does not say where it listens.
func (w Where) Desk() (*Desk, error) {
	if w.Dir == "" || w.Server != "" || w.TokenFile != "" {
		f, err := w.Open()
		if err != nil {
			return nil, err
		}
		r, _ := f.(*remote)
		return &Desk{r}, nil
	}
	if err := named.Dir(w.Dir); err != nil {
		return nil, fmt.Errorf("--dir: %w", err)
	}
	f, err := store.OpenFleet(w.Dir)
	if err != nil {
		return nil, err
	}
	token, err := f.Secret("admin")
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(w.Dir, AddressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s does not say at which address its operator finds it (serve --admin); give --server and --token-file", ErrNotRunning, w.Dir)
	} else if err != nil {
		return nil, err
	}
	at, err := netip.ParseAddrPort(strings.TrimSpace(string(b)))
	if err != nil || !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("%w: its admin address, %.80q, is none of this machine's own: give --server and --token-file", ErrNotRunning, strings.TrimSpace(string(b)))
	}
	return &Desk{&remote{base: &url.URL{Scheme: "http", Host: at.String()}, token: hex.EncodeToString(token), client: newClient()}}, nil
}

// Close ends it.
func (d *Desk) Close() error { return d.r.Close() }

// Overview is the first screen of the dashboard: one job, or the list of a server's several.
type Overview struct {
	Status   *monitor.Status      `json:"status,omitempty"` // nil of several jobs
	Forecast coordinator.Forecast `json:"forecast"`
	Paused   *store.Pause         `json:"paused,omitempty"`
	Jobs     []server.JobLine     `json:"jobs,omitempty"`
	Ready    bool                 `json:"ready"`
	Checks   []coordinator.Check  `json:"checks,omitempty"`
}

// Overview asks for it.
func (d *Desk) Overview(context.Context) (*Overview, error) {
	o := new(Overview)
	var status monitor.Status
	err := d.r.send("GET", []string{"v1", "status"}, nil, &status, http.StatusOK)
	if other := (answerError{}); errors.As(err, &other) && other.code == http.StatusNotFound { // several jobs
		if o.Jobs, err = d.r.Jobs(); err != nil {
			return nil, err
		}
		o.Ready, o.Checks, err = d.Checks()
		return o, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	o.Status = &status
	var paused server.Paused
	if err := errors.Join(d.r.ask("GET", []string{"forecast.json"}, nil, &o.Forecast), d.r.ask("GET", []string{"paused.json"}, nil, &paused)); err != nil {
		return nil, err
	}
	o.Paused = paused.Pause
	o.Ready, o.Checks, err = d.Checks()
	return o, err
}

// Checks are the coordinator's readiness checks.
func (d *Desk) Checks() (ready bool, checks []coordinator.Check, err error) {
	var out struct {
		Ready  bool                `json:"ready"`
		Checks []coordinator.Check `json:"checks"`
	}
	err = d.r.send("GET", []string{"v1", "admin", "ready.json"}, nil, &out, http.StatusOK, http.StatusServiceUnavailable)
	return out.Ready, out.Checks, err
}

// Fleet counts the devices and their programs.
func (d *Desk) Fleet() (store.Summary, error) {
	var out server.FleetPage
	err := d.r.send("GET", []string{"v1", "admin", "fleet.json"}, nil, &out, http.StatusOK)
	return out.Summary, err
}
