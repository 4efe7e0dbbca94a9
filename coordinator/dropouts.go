package coordinator

import (
	"encoding/json"
	"fmt"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/job"
)

// dropouts checks what is seen of a sampled fleet against what its job declares
// (cohort.dropout, shard.corrupt): for more than that the stated guarantee was not
// computed. Owned by the engine.
//
// One device's coin moves these counts by one, and the pause that follows from them is
// public. Within what is declared it comes with a chance of at most [job.Job.DropoutAlpha],
// which is in the job's delta; beyond, nothing is promised any more.
type dropouts struct {
	Rounds int     // that were drawn and are over
	Asked  int     // devices that were drawn and there when the coins fell, over all rounds
	Lost   int     // of those, that did not stay to the end
	Share  float64 // the largest share of any round that may be lost to it
	// Outages is the evidence that losses come together.
	Outages job.Outages
	// Beyond is the reason why no more rounds are drawn; "" while they are.
	Beyond string
	// Overruled counts how often the operator went on all the same.
	Overruled int
}

// taken is a round that is over.
type taken struct {
	ready, groups int // devices that were there, and what they were dealt into
	asked, lost   int
	share         float64 // that may be lost
}

// take counts a round in. The round by itself shows an outage, all together a fleet that always
// loses more, and the hit probabilities at what was lost one that loses much now and then.
func (d *dropouts) take(j Job, r taken) {
	asked, lost, share, alpha, draws := r.asked, r.lost, r.share, j.DropoutAlpha(), j.Draws()
	d.Outages.Take(j, r.ready, r.groups, asked, lost, share)
	if d.Outages.Beyond(alpha / 3) {
		d.Beyond = fmt.Sprintf("in %d rounds devices left together more often than a declared loss of %.3g explains, so that single devices decided over their shards: "+
			"epsilon was not computed for that. Make a new job with a larger cohort.dropout, from this one's checkpoint (adapter.start), "+
			"or go on without the promise (serve --despite-dropout)", d.Rounds+1, share)
	}
	d.Rounds, d.Asked, d.Lost, d.Share = d.Rounds+1, d.Asked+asked, d.Lost+lost, max(d.Share, share)
	each := alpha / (3 * float64(draws))
	for _, x := range []struct {
		when        string
		asked, lost int
		share       float64
	}{{"the last round", asked, lost, share}, {fmt.Sprintf("%d rounds", d.Rounds), d.Asked, d.Lost, d.Share}} {
		if x.asked > 0 && dp.BinomialTail(x.asked, x.share, x.lost) < each {
			d.Beyond = fmt.Sprintf("%d of %d devices that were drawn did not stay to the end of %s, more than a declared loss of %.3g explains: "+
				"epsilon was not computed for that. Make a new job with a larger cohort.dropout, from this one's checkpoint (adapter.start), "+
				"or go on without the promise (serve --despite-dropout)", x.lost, x.asked, x.when, x.share)
			return
		}
	}
}

// countDropouts takes a round in that is over.
func (c *Coordinator) countDropouts(r *running) error {
	if !c.t.Job.Sampled() || !c.rnd.Secret() {
		return nil
	}
	asked, lost := 0, 0
	for n, p := range r.parts {
		if p.there && !p.noRoom {
			if asked++; r.m.Left(n) {
				lost++
			}
		}
	}
	d := &c.dropouts
	before := d.Beyond
	if d.take(c.t.Job, taken{r.ready, r.groups, asked, lost, c.t.Job.Loss(c.fleet.Active(), r.ready)}); d.Beyond != before {
		c.log.Error("more devices drop out than is declared", "reason", d.Beyond)
	}
	return c.keepDropouts()
}

func (c *Coordinator) keepDropouts() error {
	b, err := json.Marshal(c.dropouts)
	if err != nil {
		return fmt.Errorf("coordinator: counts of dropouts: %w", err)
	}
	return c.store.KeepDropouts(string(b))
}

// resumeDropouts goes on with the counts of an earlier process: a restart forgets
// nothing. Overruled, they begin anew.
func (c *Coordinator) resumeDropouts() error {
	text, err := c.store.Dropouts()
	if err != nil || text == "" {
		return err
	}
	d := &c.dropouts
	if err := json.Unmarshal([]byte(text), d); err != nil {
		return fmt.Errorf("coordinator: counts of dropouts: %w", err)
	}
	if d.Beyond == "" || !c.cfg.DespiteDropout {
		return nil
	}
	c.log.Warn("the operator goes on although more devices drop out than is declared; no epsilon was computed for that", "before", d.Beyond)
	c.dropouts = dropouts{Overruled: d.Overruled + 1}
	return c.keepDropouts()
}
