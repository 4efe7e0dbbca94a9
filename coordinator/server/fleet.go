package server

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/leaf/qrcode"
	"github.com/starling-fl/starling/model"
)

// The operator's hand on the fleet. What changes something is a POST that shows
// the token as a header: a form or a page of another origin cannot send it.

// withFleet opens the fleet for a request's operator.
func (s *desk) withFleet(w http.ResponseWriter, r *http.Request, use func(f *store.Fleet) (any, error)) {
	f, err := s.fleet()
	var out any
	if err == nil {
		out, err = use(f.As(who(r).Name))
		err = errors.Join(err, f.Close())
	}
	switch {
	case errors.Is(err, store.ErrUnknown):
		http.Error(w, "there is none of that name", http.StatusNotFound)
	case errors.Is(err, errNotViewer):
		http.Error(w, err.Error(), http.StatusForbidden)
	case errors.Is(err, store.ErrRequest), errors.Is(err, store.ErrFull), errors.Is(err, store.ErrInvitation):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		s.logOf(r).Error("the fleet cannot be read or changed", "error", err)
		http.Error(w, "the fleet cannot be read or changed: see the coordinator's log", http.StatusInternalServerError)
	default:
		serveJSON(w, out)
	}
}

func serveJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the reader is gone: nobody to tell
}

// serveDevices lists the enrolled devices.
func (s *desk) serveDevices(w http.ResponseWriter, r *http.Request) {
	s.withFleet(w, r, func(f *store.Fleet) (any, error) { return f.Devices() })
}

// serveJudgement bans, pardons or forgets a device; the coordinator minds it before its next
// round.
func (s *desk) serveJudgement(w http.ResponseWriter, r *http.Request) {
	id, act := r.PathValue("identity"), r.PathValue("act")
	if len(id) != 64 { // a page names a device in full
		http.Error(w, "an identity has 64 hexadecimal digits", http.StatusBadRequest)
		return
	}
	var why struct {
		Reason string `json:"reason"`
	}
	if !told(w, r, &why) {
		return
	}
	s.withFleet(w, r, func(f *store.Fleet) (any, error) {
		var err error
		defer s.changed()
		switch act {
		case "ban":
			id, err = f.Ban(id, why.Reason)
		case "pardon":
			id, err = f.Pardon(id)
		case "forget":
			id, err = f.Forget(id)
		default:
			err = store.ErrUnknown
		}
		if err == nil {
			s.logOf(r).Warn("by an operator", "operator", who(r).Name, "act", act, "device", id[:8], "identity", id)
		}
		return map[string]string{"identity": id, "act": act}, err
	})
}

// Invitation leads devices here: the join page's address with the token, and the same as a QR code.
type Invitation struct {
	Link  string `json:"link"`  // empty before anybody has made a token
	Local bool   `json:"local"` // only this machine reaches it
	SVG   string `json:"svg"`   // an image of its own
}

func (s *desk) serveInvitation(w http.ResponseWriter, _ *http.Request) {
	var in Invitation
	if link, ok := s.link.Load().(joinLink); ok {
		in.Link, in.Local = link.address, link.local
		if c, err := qrcode.New(link.address); err == nil { // a link that is too long has none
			in.SVG = c.SVG()
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(in) // the reader is gone: nobody to tell
}

// serveArchive is the released checkpoint without its base, as one file.
func (s *Server) serveArchive(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{model.CardFile, model.AdapterConfigFile, model.AdapterFile, model.CheckpointFile} {
		data, err := os.ReadFile(filepath.Join(s.c.Result().Checkpoint, name))
		if errors.Is(err, os.ErrNotExist) && name == model.AdapterConfigFile {
			continue // not every method is a PEFT adapter
		}
		if err != nil {
			http.Error(w, "no round has been committed yet", http.StatusNotFound)
			return
		}
		f, err := z.Create("adapter/" + name)
		if err == nil {
			_, err = f.Write(data)
		}
		if err != nil {
			s.logOf(r).Error("the adapter cannot be packed", "error", err)
			http.Error(w, "the adapter cannot be packed", http.StatusInternalServerError)
			return
		}
	}
	if err := z.Close(); err != nil {
		s.logOf(r).Error("the adapter cannot be packed", "error", err)
		http.Error(w, "the adapter cannot be packed", http.StatusInternalServerError)
		return
	}
	attach(w, "application/zip", "adapter.zip")
	_, _ = w.Write(b.Bytes()) // the reader is gone: nobody to tell
}
