package edge

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/leaf/durable"
)

var (
	// ErrAccount is an account that cannot be read or saved. No round is answered without one.
	ErrAccount = errors.New("edge: the data's account cannot be used")
	// ErrPromise is a coordinator that asks for more rounds than its job announced.
	ErrPromise = errors.New("edge: the job has had the rounds that it announced")
)

// An Account records what a data set has contributed, job by job. It is on disk before a round is
// answered, so that neither a crash nor a coordinator can make the device forget. Its methods are
// safe for concurrent use.
type Account struct {
	save func([]byte) error // nil: it is kept in memory alone

	mu    sync.Mutex
	state accountState            // by mu
	moved map[*JobAccount]traffic // by mu: of this run, noted so far
}

// accountState is the content of the account's file.
type accountState struct {
	Version int                    `json:"version"`
	Jobs    map[string]*JobAccount `json:"jobs"`           // by TaskID in hexadecimal
	Begun   map[int64]int          `json:"begun"`          // rounds begun, by hour since 1970, of the last day
	Logs    map[string]*knownLog   `json:"logs,omitempty"` // of enrolled keys, by the key that signs them, in hexadecimal

	Consents map[string][]Consent `json:"consents,omitempty"` // by coordinatorOf
	Leaks    map[string]Leak      `json:"leaks,omitempty"`    // what was tried before joining, by TaskID in hexadecimal
	Members  map[string]string    `json:"members,omitempty"`  // identities that have enrolled and not left, by TaskID; all hexadecimal
}

// A JobAccount records what one job has received.
type JobAccount struct {
	Task        string `json:"-"` // TaskID in hexadecimal, of those that Jobs returns
	Name        string `json:"name"`
	Promised    uint64 `json:"promised"`    // rounds that the job announced
	Answered    uint64 `json:"answered"`    // highest number of a round answered
	Begun       uint64 `json:"begun"`       // rounds answered at all
	Contributed uint64 `json:"contributed"` // rounds in which an update was handed over
	Committed   uint64 `json:"committed"`   // of these, what the coordinator said it released

	// Noise is the noise multiplier that the job says it delivers: where noise cancels between
	// releases, that of all that one contribution moves.
	Noise        float64 `json:"noise"`
	Own          float64 `json:"own_noise,omitempty"`     // what this device added itself, over the clip norm
	ProviderRate float64 `json:"provider_rate,omitempty"` // of each provider's coin; 0: the device is the unit
	Delta        float64 `json:"delta"`
	Last         int64   `json:"last"` // seconds since 1970

	Units   int      `json:"units,omitempty"`   // most providers of a device, where the job protects those
	Groups  int      `json:"groups,omitempty"`  // that each unit's examples are in; 0: none
	Up      int64    `json:"up,omitempty"`      // bytes sent while it was this job's
	Down    int64    `json:"down,omitempty"`    // bytes received
	History []Moment `json:"history,omitempty"` // oldest first; see note
	Starts  []Start  `json:"starts,omitempty"`  // of the last rounds answered, oldest first
	// Row is the release that the last update was handed over for, counted from 1, and Before the
	// one before that; 0: none. Released says that the coordinator called Row released. They are
	// kept where noise cancels between releases.
	Row      uint64 `json:"row,omitempty"`
	Before   uint64 `json:"row_before,omitempty"`
	Released bool   `json:"row_released,omitempty"`
	handed   uint64 // the round of that hand-over; not kept: a restart ends the round
	// Forgotten is an account whose owner has had it forgotten: see Account.Forget.
	Forgotten bool `json:"forgotten,omitempty"`
}

// A Start is what a round began with. Every device of the round got the same from an honest coordinator: owners who compare
// theirs see whether it was.
type Start struct {
	Round  uint64 `json:"round"`
	Digest string `json:"digest"` // of the adapter's values at the round's rank, as its plan has it, or of the seed of a fresh one
}

// mostStarts bounds the starts that are kept of a job.
const mostStarts = 64

// Epsilon is what the job has cost as seen from this device. The device knows when it took part, so
// each contribution counts in full, at the noise that the job says it adds. ok is false if the job
// says that it adds none, or nothing was contributed.
func (j *JobAccount) Epsilon() (g dp.Guarantee, ok bool, err error) {
	if j.Contributed == 0 || !(j.Noise > 0) || !(j.Delta > 0) {
		return g, false, nil
	}
	g, err = dp.RDPEpsilon([]dp.Event{j.event()}, j.Delta)
	return g, err == nil, err
}

// Untrusted is Epsilon without trust in anybody: at the noise that this device added itself, as if
// everybody else lied. ok is false if it added none; then there is no bound.
func (j *JobAccount) Untrusted() (g dp.Guarantee, ok bool, err error) {
	alone := *j
	alone.Noise = j.Own
	return alone.Epsilon()
}

// event is the privacy event of all contributions to the job, each counted in full.
func (j *JobAccount) event() dp.Event {
	n := int(min(j.Contributed, dp.MaxRounds))
	if j.ProviderRate > 0 {
		return dp.GroupSampling{ClientRate: 1, ProviderRate: j.ProviderRate}.Rounds(j.Noise, n)
	}
	return dp.Rounds(dp.Mechanism{SamplingRate: 1, NoiseMultiplier: j.Noise}, n)
}

const accountVersion = 1

// mostAccount bounds the account's file in bytes.
const mostAccount = 4 << 20

// NewAccount returns an account that save persists; with nil it is kept in memory. b is what save
// was last given, nil for a new account. save must return only when the account would survive a
// power cut.
func NewAccount(b []byte, save func([]byte) error) (*Account, error) {
	a := &Account{save: save, state: accountState{Version: accountVersion}}
	if b != nil {
		if len(b) > mostAccount {
			return nil, fmt.Errorf("%w: %d bytes, limit %d", ErrAccount, len(b), mostAccount)
		}
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&a.state); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrAccount, err)
		}
		if a.state.Version != accountVersion {
			return nil, fmt.Errorf("%w: version %d, this program reads %d", ErrAccount, a.state.Version, accountVersion)
		}
		for task, j := range a.state.Jobs {
			if j == nil || len(j.History) > mostMoments || len(j.Starts) > mostStarts {
				return nil, fmt.Errorf("%w: job %.80q has no figures, or a history of more than %d moments or starts", ErrAccount, task, mostMoments)
			}
		}
		for name, k := range a.state.Logs {
			if k == nil || len(k.Seen) > mostSeen {
				return nil, fmt.Errorf("%w: log %.80q has no head, or more than %d", ErrAccount, name, mostSeen)
			}
		}
	}
	if a.state.Jobs == nil {
		a.state.Jobs = map[string]*JobAccount{}
	}
	if a.state.Begun == nil {
		a.state.Begun = map[int64]int{}
	}
	return a, nil
}

// OpenAccount opens the account at path, or creates it. It is an error if the file cannot be read;
// it is never started over.
func OpenAccount(path string) (*Account, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		b = nil
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAccount, err)
	}
	a, err := NewAccount(b, func(b []byte) error { return durable.Replace(path, b, 0o600) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// Jobs returns copies of the jobs' accounts.
func (a *Account) Jobs() (jobs []JobAccount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for task, j := range a.state.Jobs {
		of := *j
		of.Task, of.History, of.Starts = task, slices.Clone(of.History), slices.Clone(of.Starts)
		jobs = append(jobs, of)
	}
	return jobs
}

// spare is how many rounds beyond the announced ones a job may ask for, to make up for rounds that
// were lost after updates were handed over: a quarter, but at least five.
func spare(rounds uint64) uint64 { return max(5, rounds/4) }

const hour = int64(time.Hour / time.Second)

// begin records that a round is about to be answered, or returns why it must not be.
func (a *Account) begin(j *job, round uint64, most int, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.of(j)
	switch {
	case round <= of.Answered:
		return &RefusalError{Round: round, Cause: ErrReplay, Err: fmt.Errorf("last was %d", of.Answered)}
	case !j.apart(of):
		return &RefusalError{Round: round, Cause: ErrPlan, Err: j.tooSoon(of)}
	case of.Committed >= of.Promised:
		return fmt.Errorf("%w: %d", ErrPromise, of.Promised)
	case of.Contributed >= of.Promised+spare(of.Promised):
		return fmt.Errorf("%w: %d, and %d more that it says were lost", ErrPromise, of.Promised, spare(of.Promised))
	}
	today, oldest, at := 0, int64(0), now.Unix()/hour
	for h, n := range a.state.Begun {
		switch {
		case h <= at-24:
			delete(a.state.Begun, h)
		default:
			today += n
			if oldest == 0 || h < oldest {
				oldest = h
			}
		}
	}
	if today >= most {
		wait := time.Unix((oldest+24)*hour, 0).Sub(now)
		return &paceError{wait: min(wait, longestPause), limited: true, why: fmt.Sprintf("this data has begun %d rounds within 24 hours, its owner's limit (--rounds-a-day)", today)}
	}
	a.state.Begun[at]++
	j.round, of.Answered, of.Last = round, round, now.Unix()
	of.Begun++
	if j.start != "" {
		of.Starts = append(of.Starts, Start{round, j.start})
		of.Starts = slices.Delete(of.Starts, 0, max(0, len(of.Starts)-mostStarts))
	}
	return a.keep()
}

// contribute records that an update is about to be handed over, and the bytes moved so far. It
// holds the owner's limits once more: other jobs may have had theirs since the round began.
func (a *Account) contribute(j *job, p *Policy, moved traffic) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.affordable(j, p); err != nil {
		return err
	}
	of := a.of(j)
	if !j.apart(of) { // another process of this data may have handed over meanwhile
		return j.tooSoon(of)
	}
	of.Contributed++
	of.handOver(j)
	if of.Forgotten { // it gives again
		of.Name, of.Forgotten = Escape(j.Name, false), false
	}
	a.note(of, moved, time.Now())
	return a.keep()
}

// committed records what the coordinator says about a round. If a crash loses the record, the
// contribution still counts.
func (a *Account) committed(j *job, moved traffic) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.of(j)
	of.Committed++
	of.Released = of.Row > 0
	a.note(of, moved, time.Now())
	return a.keep()
}

// of returns a job's account; a.mu is held.
func (a *Account) of(j *job) *JobAccount {
	task := hex.EncodeToString(j.task[:])
	of := a.state.Jobs[task]
	if of == nil {
		p := j.Privacy
		of = &JobAccount{Name: Escape(j.Name, false), Promised: j.Rounds, Noise: p.NoiseMultiplier, Own: p.OwnNoise, ProviderRate: j.ProviderRate, Delta: p.Delta}
		if p.Separation > 0 {
			of.Promised, of.Noise = j.turns(), j.noiseOfOne()
		}
		if j.ProviderRate > 0 {
			of.Units = int(j.Providers)
		}
		if j.Groups > 1 {
			of.Groups = int(j.Groups)
		}
		if !p.Private { // its coordinator knows the noise
			of.Noise = 0
		}
		a.state.Jobs[task] = of
	}
	return of
}

// keep saves the account; a.mu is held.
func (a *Account) keep() error {
	if a.save == nil {
		return nil
	}
	b, err := json.MarshalIndent(&a.state, "", "\t")
	if err == nil && len(b) > mostAccount {
		err = fmt.Errorf("%d bytes, limit %d: it has too many jobs", len(b), mostAccount)
	}
	if err == nil {
		err = a.save(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAccount, err)
	}
	return nil
}

// Merge adds another account of the same data set, kept in another place. What both have of a job
// is added up, so that no contribution counts less than it did.
func (a *Account) Merge(other *Account) error {
	other.mu.Lock()
	defer other.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	for task, from := range other.state.Jobs {
		of := a.state.Jobs[task]
		if of == nil {
			copied := *from
			a.state.Jobs[task] = &copied
			continue
		}
		of.Answered, of.Last = max(of.Answered, from.Answered), max(of.Last, from.Last)
		of.Promised = min(of.Promised, from.Promised)
		of.mergeRows(from)
		of.Begun += from.Begun
		of.Contributed += from.Contributed
		of.Committed += from.Committed
		of.Up, of.Down = of.Up+from.Up, of.Down+from.Down
		of.History = mergeHistory(of.History, from.History)
		if of.Forgotten && !from.Forgotten {
			of.Name, of.Forgotten = from.Name, false
		}
	}
	for hour, n := range other.state.Begun {
		a.state.Begun[hour] += n
	}
	a.mergeConsents(other)
	a.mergeLeaks(other)
	for task, identity := range other.state.Members {
		if _, known := a.state.Members[task]; !known {
			a.enter(task, identity)
		}
	}
	a.mergeLogs(other.state.Logs)
	return a.keep()
}
