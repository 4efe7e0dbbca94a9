package edge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
)

// Discovery restricts jobs that the owner did not name but that were found in a coordinator's list.
// What the owner accepted for another job of the same coordinator does not count for such a job; and it
// must not add merely simulated noise, unless the configuration accepts jobs that are not private.
type Discovery struct {
	Tasks []string // what may be learnt of the data, as model names tasks
}

const whyTask = "Data that were gathered to learn one thing may tell more where another is learnt of them"

// check checks an announced job against it; nil allows all, of a job that the owner named.
func (f *Discovery) check(j *wire.Job, notPrivate bool) error {
	if f == nil {
		return nil
	}
	if j.Privacy.Simulated && !notPrivate {
		return fmt.Errorf("%w: it simulates the noise of a larger fleet and does not protect this one", ErrNotPrivate)
	}
	kind, err := model.ParseTask(j.Task)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJob, err)
	}
	if name := kind.String(); !slices.Contains(f.Tasks, name) {
		return fmt.Errorf("%w:\n%w", ErrPolicy, &PolicyError{Key: "tasks", What: "the job learns to " + name, Why: whyTask, Have: name, Want: strings.Join(f.Tasks, ",")})
	}
	return nil
}

// An Offer is one job in the list of a coordinator with several.
type Offer struct {
	Name, Pool string
	Token      string // leads to this job alone
}

// AskJobs lists the jobs that are open at the coordinator that a fleet's token leads to. Nobody
// enrols. It reads these fields of the configuration: Token, Policy, AllowPlain, MaxBlob, HTTP and
// Handshake.
func AskJobs(ctx context.Context, cfg Config) ([]Offer, error) {
	blobs, done, err := cfg.asking()
	if err != nil {
		return nil, err
	}
	defer done()
	var in wire.Offers
	if err := blobs.told(ctx, cfg.Handshake, wire.JobsPath, wire.MaxOffersIn, &in); err != nil {
		return nil, err
	}
	if len(in.Jobs) > wire.MaxOffers {
		return nil, &ProtocolError{fmt.Errorf("list of jobs: %d, limit %d", len(in.Jobs), wire.MaxOffers)}
	}
	var out []Offer
	for _, o := range in.Jobs {
		t, err := o.Token(blobs.token)
		if err != nil {
			return nil, &ProtocolError{err}
		}
		out = append(out, Offer{Name: o.Name, Pool: o.Pool, Token: t.String()})
	}
	return out, nil
}
