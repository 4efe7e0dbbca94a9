package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/starling-fl/starling/coordinator/store"
)

// What the dashboard asks for beside its stream, and has done.

// FleetPage is a summary of the fleet, and some of its devices.
type FleetPage struct {
	store.Summary
	Found   int            `json:"found"` // number of matching devices; Devices holds one page of them
	Devices []store.Device `json:"devices"`
}

// defaultPage is how many devices a page has that says nothing else.
const defaultPage = 50

// serveFleet answers with a page of devices: begins (hexadecimal digits), held=true (only those with
// strikes or excluded), from and most choose it.
func (s *Server) serveFleet(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	which := store.PageQuery{Prefix: q.Get("begins"), Held: q.Get("held") == "true", Limit: defaultPage}
	for name, at := range map[string]*int{"from": &which.Offset, "most": &which.Limit} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				http.Error(w, fmt.Sprintf("%s is %.40q: want a number", name, text), http.StatusBadRequest)
				return
			}
			*at = n
		}
	}
	s.withFleet(w, r, func(f *store.Fleet) (any, error) {
		var page FleetPage
		var err, counted error
		page.Devices, page.Found, err = f.Page(which)
		page.Summary, counted = f.Summary()
		return page, errors.Join(err, counted)
	})
}

// serveForecast answers with what the rest of the job costs; null if nothing is known.
func (s *Server) serveForecast(w http.ResponseWriter, _ *http.Request) {
	forecast, err := s.c.Forecast()
	if err != nil {
		s.log.Error("cannot compute the cost of the job", "error", err)
		http.Error(w, "cannot compute the cost of the job: see the coordinator's log", http.StatusInternalServerError)
		return
	}
	serveJSON(w, forecast)
}

// Paused is the job's pause, if operators have paused it.
type Paused struct {
	Pause *store.Pause `json:"pause"` // null: it goes on
}

// Begun is what an operator's word to begin comes to, and in words.
type Begun struct {
	store.Beginning
	Says string `json:"says"`
}

func (s *Server) servePaused(w http.ResponseWriter, r *http.Request) {
	s.withFleet(w, r, func(f *store.Fleet) (any, error) { return s.paused(f) })
}

// paused is the pause that holds: of one job among several, what the fleet's store wants of it.
func (s *Server) paused(f *store.Fleet) (Paused, error) {
	if s.job == "" {
		p, err := f.Paused()
		return Paused{p}, err
	}
	all, err := f.Hosted()
	for _, j := range all {
		if j.Name == s.job && j.Want == store.WantPause {
			return Paused{cmp.Or(j.Paused, &store.Pause{By: "an operator"})}, err
		}
	}
	return Paused{}, err
}

// serveSteering has the job begin, pauses it or has it go on. A process that an operator ends is not started again
// by a page: a pause is what it offers, and it holds over restarts.
func (s *Server) serveSteering(w http.ResponseWriter, r *http.Request) {
	var why struct {
		Reason string `json:"reason"`
	}
	if !told(w, r, &why) {
		return
	}
	act := r.PathValue("act")
	s.withFleet(w, r, func(f *store.Fleet) (any, error) {
		err := store.ErrUnknown
		var begins store.Beginning
		switch {
		case act == "begin":
			begins, err = f.Begin()
		case act != "pause" && act != "resume":
		case s.job != "":
			err = s.steer(r, f, s.job, act, why.Reason)
		case act == "pause":
			err = f.Pause(why.Reason)
		default:
			err = f.Resume()
		}
		if err != nil {
			return nil, err
		}
		s.log.Warn("by an operator", "operator", who(r).Name, "act", act+" job")
		if act == "begin" {
			return Begun{begins, begins.String()}, nil
		}
		return s.paused(f)
	})
}

// errNotViewer is for operators who would name more than viewers.
var errNotViewer = errors.New("the role operator names viewers only: an admin names others")

// mayName reports whether somebody may give or take a role: admins any, operators that of a viewer,
// with which nobody does more than they can show others anyway.
func mayName(by, role store.Role) error {
	if !slices.Contains(store.Roles, role) {
		return nil // the store says what is wrong with it
	}
	if by == store.RoleAdmin || by == store.RoleOperator && role == store.RoleViewer {
		return nil
	}
	return errNotViewer
}

// roleOf is the role that a name was given; ErrUnknown if it was given none.
func roleOf(f *store.Fleet, name string) (store.Role, error) {
	all, err := f.Operators()
	if err != nil {
		return "", err
	}
	for _, o := range all {
		if o.Name == name {
			return o.Role, nil
		}
	}
	return "", fmt.Errorf("%w: operator %.70q", store.ErrUnknown, name)
}
