package edge

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
)

// announcedPath is where a coordinator serves the announcement of its job to anybody.
const announcedPath = aboutPath + "/announced"

// Ask fetches the job of the coordinator that the token leads to, and its base, and returns a round
// of it that can be tried. Nothing is sent and nobody enrols. The job is not checked against the
// policy, except for what the trial itself takes: Run does that. It reads these fields of the
// configuration: Token, Policy, AllowPlain, CacheDir, Base, MaxBlob, HTTP and Handshake.
func Ask(ctx context.Context, cfg Config) (Trial, error) {
	blobs, done, err := cfg.asking()
	if err != nil {
		return Trial{}, err
	}
	defer done()
	blobs.dir = cfg.CacheDir
	_, announced, _, err := blobs.announced(ctx, cfg.Handshake)
	if err != nil {
		return Trial{}, err
	}
	c, j := &client{cfg: cfg, token: blobs.token, blobs: blobs}, &job{Job: *announced}
	if cfg.Base != nil {
		if c.own, err = newOwnBase(cfg.Base); err != nil {
			return Trial{}, err
		}
		if j.base = c.own[announced.Base.SHA256]; j.base == nil {
			return Trial{}, fmt.Errorf("%w: the job's is %x, which the one given here is in no form", ErrBase, announced.Base.SHA256)
		}
	}
	base, err := c.openBase(ctx, j)
	if err != nil {
		return Trial{}, fmt.Errorf("%w: %w", ErrBase, err)
	}
	if j.layout, err = layoutOf(&j.Job, base); err != nil {
		return Trial{}, err
	}
	t := trialOf(j, base, cfg.Policy)
	columns, err := task.Columns(j.layout, t.Sequence)
	if err != nil {
		return Trial{}, fmt.Errorf("%w: %w", ErrJob, err)
	}
	return t, errors.Join(cfg.Policy.checkValues(j.layout.Size(t.Rank)), cfg.Policy.checkBatch(columns, t.Batch))
}

// asking is what fetches a coordinator's answers to anybody, before anyone enrols; done ends it. It sets defaults of the
// configuration.
func (cfg *Config) asking() (f *fetcher, done func(), err error) {
	token, err := cfg.reach()
	if err != nil {
		return nil, nil, err
	}
	transport, done := newBlobClient(token, cfg.HTTP)
	return &fetcher{client: transport, token: token, most: cfg.MaxBlob, down: new(atomic.Int64)}, done, nil
}

// announced fetches the job, its bytes and its TaskID.
func (f *fetcher) announced(ctx context.Context, within time.Duration) ([]byte, *wire.Job, [32]byte, error) {
	b, status, err := f.answer(ctx, within, announcedPath, mostAbout)
	if err != nil {
		return nil, nil, [32]byte{}, err
	}
	if status != statusOK {
		return nil, nil, [32]byte{}, fmt.Errorf("%w: it answers %d to a request for its job: its version does not announce the job before enrolment", ErrUnreachable, status)
	}
	announced, err := wire.ParseJob(b)
	if err != nil {
		return nil, nil, [32]byte{}, &ProtocolError{err}
	}
	id := wire.TaskID(b)
	if len(f.token.Task) != 0 && id != [32]byte(f.token.Task) {
		return nil, nil, [32]byte{}, fmt.Errorf("%w: it runs another job than the join token was made for", ErrJobChanged)
	}
	return b, announced, id, nil
}

// basePath is where a coordinator says what its job's base is like, as a model.Config in JSON.
const basePath = aboutPath + "/base"

// mostConfig bounds that answer, bytes.
const mostConfig = 64 << 10

// layout is the job's by what the coordinator says of its base: by its word, until the base itself is there. It is nil
// if the coordinator does not say, or says what no base is like.
func (f *fetcher) layout(ctx context.Context, within time.Duration, j *wire.Job) *model.Layout {
	var c model.Config
	if f.told(ctx, within, basePath, mostConfig, &c) != nil || c.Validate() != nil {
		return nil
	}
	l, err := layoutOf(j, &model.Base{Config: c})
	if err != nil {
		return nil
	}
	return l
}

// A Verdict is what a device says of a job before its owner has joined: by the announcement, the policy and its own
// arithmetic.
type Verdict struct {
	Job string // its name
	// Beyond are the limits of the policy that the job is beyond, as far as they show without its base and its program: of
	// the base by what the coordinator says of it. Its owner would be asked about them.
	Beyond []PolicyError
	// Granted tells that the account has the owner's consent to all of them for this coordinator.
	Granted bool
	// Shown bounds, in bits, what all rounds of the job could tell although everybody else lies. It counts the rounds that
	// a coordinator may call lost. It is infinite if devices add no noise themselves.
	Shown Shown
}

// AskLimits fetches the job of the coordinator that the token leads to and judges it. examples is how many the data has;
// 0 if that is not known yet. Nobody enrols, and nothing is sent. It reads these fields of the configuration: Token,
// Policy, TrustLocal, Account (if there is one), Known, AllowPlain, AcceptNotPrivate, HTTP and Handshake. The errors are
// those of [Ask].
func AskLimits(ctx context.Context, cfg Config, examples int) (v Verdict, err error) {
	blobs, done, err := cfg.asking()
	if err != nil {
		return v, err
	}
	defer done()
	_, j, task, err := blobs.announced(ctx, cfg.Handshake)
	if err != nil {
		return v, err
	}
	var had Shown
	if cfg.Account != nil {
		had = cfg.Account.shownElsewhere(task)
	}
	layout := blobs.layout(ctx, cfg.Handshake, j)
	beyond := func() []PolicyError {
		found := errors.Join(cfg.Policy.checkJob(j, had), (&client{cfg: cfg}).checkBase(&job{Job: *j}))
		if examples > 0 && j.Providers == 0 {
			found = errors.Join(found, cfg.Policy.enough(examples))
		}
		if layout != nil {
			found = errors.Join(found, cfg.Policy.checkShape(j, layout))
		}
		list := PolicyErrors(found)
		if !j.Privacy.Private && !cfg.AcceptNotPrivate {
			list = append(list, PolicyErrors(ErrNotPrivate)...)
		}
		return list
	}
	v = Verdict{Job: j.Name, Beyond: beyond(), Shown: announced(j)}
	if cfg.Account != nil && len(v.Beyond) > 0 {
		cfg.widen(blobs.token)
		v.Granted = len(beyond()) == 0
	}
	return v, nil
}
