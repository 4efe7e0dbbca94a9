package jobs

import "strings"

// turns says which job may draw a round. It has no lock, clock or store: anyone who holds it
// says what has happened.
type turns struct {
	claims map[string]*claim
	given  uint64 // turns, ever
}

// claim is one job's.
type claim struct {
	pool     string
	priority int
	wants    bool   // it has the devices for a round
	has      bool   // the turn
	last     uint64 // the number of its last turn
	wake     func() // has the job ask again; must not wait
}

func newTurns() *turns { return &turns{claims: map[string]*claim{}} }

// enter lets a job ask.
func (t *turns) enter(name, pool string, priority int, wake func()) {
	t.claims[name] = &claim{pool: pool, priority: priority, wake: wake}
}

// leave ends what a job has or wants.
func (t *turns) leave(name string) {
	if c := t.claims[name]; c != nil {
		delete(t.claims, name)
		t.wake(c.pool)
	}
}

// ask gives a job the turn, or names the one that is before it.
func (t *turns) ask(name string) (mine bool, before string) {
	c := t.claims[name]
	if c == nil {
		return false, ""
	}
	c.wants = true
	for other, o := range t.claims {
		if o != c && o.pool == c.pool && (o.has || o.wants && precedes(other, o, name, c)) {
			if before == "" || o.has || !t.claims[before].has && precedes(other, o, before, t.claims[before]) {
				before = other
			}
		}
	}
	if before == "" {
		t.given++
		c.has, c.last = true, t.given
		return true, ""
	}
	if o := t.claims[before]; !o.has {
		o.wake() // it may not have noticed that nobody has the turn
	}
	return false, before
}

// precedes orders two jobs that want the turn.
func precedes(a string, c *claim, b string, d *claim) bool {
	if c.priority != d.priority {
		return c.priority > d.priority
	}
	if c.last != d.last {
		return c.last < d.last
	}
	return strings.Compare(a, b) < 0
}

// withdraw says that a job cannot use the turn now.
func (t *turns) withdraw(name string) {
	if c := t.claims[name]; c != nil && (c.wants || c.has) {
		c.wants, c.has = false, false
		t.wake(c.pool)
	}
}

// done gives the turn back; again: the job wants the next one as well.
func (t *turns) done(name string, again bool) {
	if c := t.claims[name]; c != nil {
		c.has, c.wants = false, again
		t.wake(c.pool)
	}
}

// wake has all who want the turn ask again.
func (t *turns) wake(pool string) {
	for _, c := range t.claims {
		if c.pool == pool && c.wants && !c.has {
			c.wake()
		}
	}
}
