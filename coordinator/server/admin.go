package server

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// routes are the operator's endpoints, each with the least role that it is for.
func (s *Server) routes() []route {
	return append(s.desk.routes(), []route{
		{"GET /metrics", store.RoleViewer, s.metrics().ServeHTTP},
		{"GET /v1/status", store.RoleViewer, func(w http.ResponseWriter, _ *http.Request) { serveStatus(w, s.c.Status()) }},
		{"GET /v1/admin/events", store.RoleViewer, s.serveEvents},
		{"GET /v1/admin/job.yaml", store.RoleViewer, s.serveJobFile},
		{"GET /v1/admin/rounds.csv", store.RoleViewer, s.serveRounds},
		{"GET /v1/admin/ledger.json", store.RoleViewer, s.serveLedger},
		{"GET /v1/admin/adapter/{file}", store.RoleViewer, s.serveAdapter},
		{"GET /v1/admin/adapter.zip", store.RoleViewer, s.serveArchive},
		{"GET /v1/admin/fleet.json", store.RoleViewer, ofFleet(s.serveFleet)},
		{"GET /v1/admin/forecast.json", store.RoleViewer, s.serveForecast},
		{"GET /v1/admin/paused.json", store.RoleViewer, s.servePaused},
		{"POST /v1/admin/job/{act}", store.RoleOperator, s.serveSteering},
		{"GET /v1/admin/ready.json", store.RoleViewer, s.serveChecks},
	}...)
}

// routes are those that ask nothing of one job.
func (s *desk) routes() []route {
	return append(s.open(), []route{
		{"GET /v1/openapi.json", store.RoleViewer, s.serveOpenAPI},
		{"GET /v1/admin/who.json", store.RoleViewer, s.serveWho},
		{"GET /v1/admin/devices.json", store.RoleViewer, ofFleet(s.serveDevices)},
		{"POST /v1/admin/devices/{identity}/{act}", store.RoleOperator, s.serveJudgement},
		{"GET /v1/admin/invitation.json", store.RoleOperator, s.serveInvitation}, // its link enrols devices
		{"GET /v1/admin/reached.json", store.RoleOperator, s.serveReached},
		{"GET /v1/admin/invitations.json", store.RoleOperator, s.serveInvitations},
		{"POST /v1/admin/invitations", store.RoleOperator, s.serveInvite},
		{"POST /v1/admin/invitations/{id}/revoke", store.RoleOperator, s.serveRevokeInvitation},
		{"GET /v1/admin/acts.json", store.RoleOperator, s.serveActs},
		{"GET /v1/admin/operators.json", store.RoleOperator, s.serveOperators}, // of viewers, where no admin asks
		{"POST /v1/admin/operators", store.RoleOperator, s.serveAddOperator},
		{"POST /v1/admin/operators/{name}/revoke", store.RoleOperator, s.serveRevokeOperator},
		{"GET /debug/pprof/", store.RoleAdmin, pprof.Index},
		{"GET /debug/pprof/profile", store.RoleAdmin, pprof.Profile},
		{"GET /debug/pprof/trace", store.RoleAdmin, pprof.Trace},
	}...)
}

// AdminHandler serves operators, for a listener of its own: the dashboard, its endpoints, and the
// metrics, all of which require an operator's token.
func (s *Server) AdminHandler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.HandleFunc(r.pattern, s.asks(r.role, r.serve))
	}
	s.commonRoutes(mux)
	return unframed(mux)
}

const (
	eventsApart = 200 * time.Millisecond // between two overviews
	eventsAlive = 10 * time.Second       // without a change

	// roundsAtOnce are told in one event: a page that reads two thousand in one piece stands still.
	roundsAtOnce = 50
)

// serveEvents streams server-sent events: "overview", "rounds" and "events" at
// once, then what has changed.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	follower := s.c.Follow()
	if follower == nil {
		http.Error(w, "too many dashboards are open already", http.StatusServiceUnavailable)
		return
	}
	defer follower.Close()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	alive := time.NewTimer(eventsAlive)
	defer alive.Stop()
	for {
		if o, err := s.shows(r); err != nil || o == nil { // revoked or expired meanwhile
			return
		}
		news, changed := follower.News()
		b, err := events(news)
		if err != nil {
			s.logOf(r).Error("cannot send to the dashboard", "error", err)
			return
		}
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // where it cannot be set, the socket's own holds
		if _, err := w.Write(b); err != nil {
			return
		}
		if out.Flush() != nil {
			return
		}
		alive.Reset(eventsAlive)
		select {
		case <-changed:
		case <-alive.C:
		case <-r.Context().Done():
			return
		case <-s.c.Closing():
			return
		}
		select {
		case <-time.After(eventsApart):
		case <-r.Context().Done():
			return
		}
	}
}

// events writes news as server-sent events.
func events(n monitor.News) (out []byte, err error) {
	put := func(name string, data any) {
		b, e := json.Marshal(data)
		out = fmt.Appendf(out, "event: %s\ndata: %s\n\n", name, b)
		err = errors.Join(err, e)
	}
	put("overview", n.Overview)
	for some := range slices.Chunk(n.Rounds, roundsAtOnce) {
		put("rounds", some)
	}
	if len(n.Lines) > 0 {
		put("events", n.Lines)
	}
	return out, err
}

// serveJobFile is the job with every default filled in, without its secret.
func (s *Server) serveJobFile(w http.ResponseWriter, r *http.Request) {
	j := s.c.Job()
	j.Enrolment.Secret = ""
	b, err := strict.Encode(j)
	if err != nil {
		s.logOf(r).Error("the job cannot be written", "error", err)
		http.Error(w, "the job cannot be written", http.StatusInternalServerError)
		return
	}
	attach(w, "application/yaml", "job.yaml")
	_, _ = w.Write(b) // the reader is gone: nobody to tell
}

func attach(w http.ResponseWriter, kind, name string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
}

// roundColumns head the rounds' table; roundLine fills them.
var roundColumns = []string{"round", "version", "rank", "cohort", "dropped", "absent", "released", "reason", "seconds", "ended", "clip_norm",
	"accuracy", "accuracy_rank", "loss", "epsilon_delivered", "epsilon_simulated", "delta", "bytes_up", "bytes_down",
	"accuracy_drawn", "measured_on", "declined", "stopped", "refused", "sessions_refused", "values_bytes",
	"fleet_units", "fleet_accuracy", "fleet_accuracy_low", "fleet_accuracy_high", "fleet_loss", "fleet_loss_low", "fleet_loss_high",
	"fleet_steps_per_second", "fleet_steps_per_second_low", "fleet_steps_per_second_high"}

// roundLine is a round as a line of the table; what is not known is empty. values are those
// of a message, whose bytes as float32 publications count.
func roundLine(r monitor.RoundRecord, values int) []string {
	float := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	var accuracy, rank, loss, delivered, simulated, delta, ended, drawn, of string
	if r.Ended > 0 {
		ended = time.Unix(r.Ended, 0).UTC().Format(time.RFC3339)
	}
	if len(r.Accuracy) > 0 {
		best := slices.MaxFunc(r.Accuracy, func(a, b metric.RankAccuracy) int { return cmp.Compare(a.Accuracy, b.Accuracy) })
		accuracy, rank = float(best.Accuracy), strconv.Itoa(best.Rank)
		if best.Loss > 0 {
			loss = float(best.Loss)
		}
		if best.Of > 0 {
			of = strconv.Itoa(best.Of)
		}
		if i := slices.IndexFunc(r.Accuracy, func(a metric.RankAccuracy) bool { return a.Rank == r.Rank }); i >= 0 {
			drawn = float(r.Accuracy[i].Accuracy)
		}
	}
	if r.Delivered != nil {
		delivered, delta = float(r.Delivered.Epsilon), float(r.Delivered.Delta)
	}
	if r.Simulated != nil {
		simulated = float(r.Simulated.Epsilon)
	}
	line := []string{strconv.FormatUint(r.Round, 10), strconv.Itoa(r.Version), strconv.Itoa(r.Rank), strconv.Itoa(r.Cohort),
		strconv.Itoa(r.Dropped), strconv.Itoa(r.Absent), strconv.FormatBool(r.Released), r.Reason, float(r.Seconds), ended, float(r.ClipNorm),
		accuracy, rank, loss, delivered, simulated, delta, strconv.FormatInt(r.BytesUp, 10), strconv.FormatInt(r.BytesDown, 10),
		drawn, of, strconv.Itoa(r.Declined), strconv.Itoa(r.Stopped), strconv.Itoa(r.Refused), strconv.FormatInt(r.SessionsRefused, 10), strconv.Itoa(4 * values)}
	fleet := [10]string{} // with 95 % intervals of the noise
	if f := r.Fleet; f != nil {
		fleet[0] = float(f.Units.Mean)
		for i, n := range []metric.Noisy{f.Accuracy, f.Loss, f.Speed} {
			if n == (metric.Noisy{}) {
				continue
			}
			low, high := n.Interval()
			if i == 2 {
				low, high = n.FactorInterval()
			}
			fleet[3*i+1], fleet[3*i+2], fleet[3*i+3] = float(n.Mean), float(low), float(high)
		}
	}
	return append(line, fleet[:]...)
}

// serveRounds is the rounds that are over, one a line.
func (s *Server) serveRounds(w http.ResponseWriter, _ *http.Request) {
	attach(w, "text/csv; charset=utf-8", "rounds.csv")
	out := csv.NewWriter(w)
	_ = out.Write(roundColumns)
	for _, r := range s.c.Rounds() {
		_ = out.Write(roundLine(r, s.c.Values(r.Rank))) // its error is Flush's
	}
	out.Flush() // the reader is gone: nobody to tell
}

// serveLedger is the privacy ledger, verified.
func (s *Server) serveLedger(w http.ResponseWriter, r *http.Request) {
	ledger, err := s.c.Ledger()
	if err != nil {
		s.logOf(r).Error("the ledger cannot be read", "error", err)
		http.Error(w, "the ledger cannot be read", http.StatusInternalServerError)
		return
	}
	type line struct {
		Seq   uint64   `json:"seq"`
		Event dp.Event `json:"event"`
		store.Note
		Hash string `json:"hash"`
	}
	out := struct {
		Task    string `json:"task"`
		Private bool   `json:"private"`
		Head    string `json:"head"`
		Entries []line `json:"entries"`
	}{ledger.Task, ledger.Private, ledger.HeadString(), []line{}}
	for _, e := range ledger.Entries {
		out.Entries = append(out.Entries, line{e.Seq, e.Event, e.Note, fmt.Sprintf("%x", e.Hash)})
	}
	attach(w, "application/json", "ledger.json")
	_ = json.NewEncoder(w).Encode(out) // the reader is gone: nobody to tell
}

// serveAdapter is a file of the released checkpoint, in PEFT's layout.
func (s *Server) serveAdapter(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	if name != model.AdapterFile && name != model.AdapterConfigFile && name != model.CheckpointFile {
		http.NotFound(w, r)
		return
	}
	b, err := os.ReadFile(filepath.Join(s.c.Result().Checkpoint, name))
	if err != nil {
		http.Error(w, "no round has been committed yet", http.StatusNotFound)
		return
	}
	attach(w, "application/octet-stream", name)
	_, _ = w.Write(b) // the reader is gone: nobody to tell
}
