package simulate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/model"
)

// ErrState is a state file that belongs to another run, or is damaged.
var ErrState = errors.New("simulate: state file")

// state is what a run continues from: everything between two rounds.
type state struct {
	Version  int      `cbor:"1,keyasint"` // of this format
	Settings [32]byte `cbor:"2,keyasint"`
	Core     core.Snapshot
	Rounds   []byte         // JSON, as Result has them
	Events   [][]byte       // canonical
	Duals    map[int][]byte `cbor:",omitempty"`
	Resting  [][]int        `cbor:",omitempty"` // the last cohorts, if noise is banded
}

const (
	stateVersion = 1
	maxState     = 1 << 30 // bytes that are read
)

// identify computes what a state may be continued under.
func (r *Run) identify() ([32]byte, error) {
	job := r.job
	job.Base, job.Adapter.Start = "", "" // their hashes count, not their names
	b, err := json.Marshal(job)
	if err != nil {
		return [32]byte{}, err
	}
	h := sha256.New()
	_, base := r.core.Base()
	fmt.Fprintf(h, "starling simulation 2\x00%q\x00%d\x00%v\x00%d\x00%v\x00", r.cfg.Engine, r.cfg.Population.Len(), r.core.NoiseMultiplier(), r.cfg.Every, r.cfg.Ranks)
	h.Write(base[:])
	if r.cfg.Start != nil {
		from, err := AdapterSHA256(r.cfg.Start)
		if err != nil {
			return [32]byte{}, err
		}
		h.Write(from[:])
	}
	h.Write(r.cfg.Seed)
	fmt.Fprintf(h, "\x00%d\x00%s", len(r.cfg.Data), r.cfg.Data)
	if r.cfg.Dropout > 0 { // nothing if there is none: states of before stay
		fmt.Fprintf(h, "\x00dropout %v\x00", r.cfg.Dropout)
	}
	if r.cfg.Slow > 0 {
		fmt.Fprintf(h, "\x00slow %v\x00", r.cfg.Slow)
	}
	h.Write(b)
	return [32]byte(h.Sum(nil)), nil
}

// nameState puts the settings where the state's name has an asterisk.
func (r *Run) nameState() {
	folder, name := filepath.Split(r.cfg.State)
	r.cfg.State = filepath.Join(folder, strings.Replace(name, "*", hex.EncodeToString(r.settings[:6]), 1))
}

// AdapterSHA256 identifies an adapter that a run starts from, its method included.
func AdapterSHA256(a *model.Adapter) ([32]byte, error) {
	b, err := model.EncodeAdapter(a)
	if err != nil {
		return [32]byte{}, err
	}
	return sha256.Sum256(append(b, a.Layout().Method.Spelled("%+v")...)), nil
}

// keep writes the state whole or not at all.
func (r *Run) keep() error {
	if r.cfg.State == "" {
		return nil
	}
	s := state{Version: stateVersion, Settings: r.settings, Resting: r.resting}
	var err error
	if s.Core, err = r.core.Snapshot(); err != nil {
		return err
	}
	if s.Rounds, err = json.Marshal(r.rounds); err != nil {
		return err
	}
	for _, e := range r.events {
		b, err := e.MarshalBinary()
		if err != nil {
			return err
		}
		s.Events = append(s.Events, b)
	}
	if s.Duals, err = r.duals.kept(); err != nil {
		return err
	}
	b, err := cbor.Marshal(s)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	sum := sha256.Sum256(b)
	return durable.Replace(r.cfg.State, append(sum[:], b...), 0o644)
}

// takeUp continues from the state file, if there is one.
func (r *Run) takeUp() (err error) {
	if r.cfg.State == "" {
		return nil
	}
	if r.settings, err = r.identify(); err != nil {
		return err
	}
	r.nameState()
	info, err := os.Stat(r.cfg.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Size() > maxState {
		return fmt.Errorf("%w %s: %d bytes, the limit is %d", ErrState, r.cfg.State, info.Size(), maxState)
	}
	b, err := os.ReadFile(r.cfg.State)
	if err != nil {
		return err
	}
	if err := r.parse(b); err != nil {
		return fmt.Errorf("%w %s: %w; remove it to start anew", ErrState, r.cfg.State, err)
	}
	return nil
}

func (r *Run) parse(b []byte) error {
	if len(b) < sha256.Size {
		return fmt.Errorf("has %d bytes", len(b))
	}
	if sum := sha256.Sum256(b[sha256.Size:]); !bytes.Equal(sum[:], b[:sha256.Size]) {
		return errors.New("is damaged")
	}
	var s state
	if err := cbor.Unmarshal(b[sha256.Size:], &s); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	switch {
	case s.Version != stateVersion:
		return fmt.Errorf("has version %d, this program writes %d", s.Version, stateVersion)
	case s.Settings != r.settings:
		return errors.New("belongs to other settings")
	}
	var rounds []Round
	if err := json.Unmarshal(s.Rounds, &rounds); err != nil {
		return fmt.Errorf("its rounds cannot be read: %w", err)
	}
	events := make([]dp.Event, len(s.Events))
	for i, e := range s.Events {
		if err := events[i].UnmarshalBinary(e); err != nil {
			return err
		}
	}
	if len(rounds) != len(events) || uint64(len(rounds)) != s.Core.Version {
		return fmt.Errorf("has %d rounds and %d events at version %d", len(rounds), len(events), s.Core.Version)
	}
	if err := r.core.Restore(s.Core); err != nil {
		return err
	}
	if want := min(len(rounds), max(1, r.job.Privacy.Separation)-1); len(s.Resting) != want {
		return fmt.Errorf("has %d last cohorts, of %d it must have", len(s.Resting), want)
	}
	r.rounds, r.events, r.resting = rounds, events, s.Resting
	return r.duals.takeUp(s.Duals)
}
