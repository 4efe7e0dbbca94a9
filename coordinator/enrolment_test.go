package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// enrolled dials once and returns what the coordinator said to it.
func enrolled(t *testing.T, ctx context.Context, p *player) error {
	t.Helper()
	err := p.dial(ctx)
	if p.conn != nil {
		p.conn.CloseNow()
	}
	return err
}

// refusedWith reports whether err is the coordinator's word of a code.
func refusedWith(err error, code uint16) bool {
	var e *wire.Error
	return errors.As(err, &e) && e.Code == code
}

// TestHostileInvitedStranger: a token for one device enrols one; who knows nothing,
// or has a token that was revoked, enrols none. Who is banned while it is connected
// loses its session.
func TestHostileInvitedStranger(t *testing.T) {
	dir := t.TempDir()
	tb := setTable(t, Config{Job: tinyJob(3), Dir: dir}, 0, nil)
	if err := tb.c.RequireSecret(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- tb.c.Run(ctx) }()
	f, err := store.OpenFleet(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, secret, err := f.Invite("", 1, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	gone, revoked, err := f.Invite("", 5, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Revoke(gone.ID); err != nil {
		t.Fatal(err)
	}
	with := func(secret []byte) *player {
		token := tb.token
		token.Secret = secret
		return newPlayer(t, token)
	}
	guest := with(secret)
	if err := enrolled(t, ctx, guest); err != nil {
		t.Fatalf("by an invitation: %v", err)
	}
	guest.session = nil
	for range 50 { // its first session may not be over yet
		if err = enrolled(t, ctx, guest); !refusedWith(err, wire.CodeDuplicate) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		t.Errorf("the same device again: %v", err)
	}
	if err := enrolled(t, ctx, with(tb.c.secret)); err != nil {
		t.Errorf("by the job's own secret: %v", err)
	}
	for name, p := range map[string]*player{"no secret": with(nil), "a guess": with([]byte("a guess of sixteen")), "a spent one": with(secret), "a revoked one": with(revoked)} {
		if err := enrolled(t, ctx, p); !refusedWith(err, wire.CodeEnrolment) {
			t.Errorf("with %s: %v", name, err)
		}
	}
	id := guest.id()
	if _, err := f.Ban(fmt.Sprintf("%x", id), "enough"); err != nil {
		t.Fatal(err)
	}
	if err := enrolled(t, ctx, guest); !refusedWith(err, wire.CodeEnrolment) || !strings.Contains(err.Error(), "enough") {
		t.Errorf("a banned device: %v", err)
	}
	cancel()
	<-ran
	tb.server.Close()
	if err := tb.c.Close(); err != nil {
		t.Error(err)
	}
}

// TestHostileAttempts: one address enrols, or fails to, so many times in an hour; devices
// that are enrolled do not suffer for it.
func TestHostileAttempts(t *testing.T) {
	job := tinyJob(3)
	job.Enrolment.Secret = "correct horse battery"
	tb := setTable(t, Config{Job: job, EnrolmentsOfAddress: 5}, 3, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 2 {
		p := newPlayer(t, tb.token)
		p.token.Secret = []byte("wrong wrong wrong wrong")
		if err := enrolled(t, ctx, p); !refusedWith(err, wire.CodeEnrolment) {
			t.Errorf("attempt %d: %v", i, err)
		}
	}
	if err := tb.run(); err != nil { // the three that are left
		t.Fatal(err)
	}
	if tb.c.Result().Rounds != 2 {
		t.Errorf("%+v", tb.c.Result())
	}
	if n := len(tb.c.fleet.All()); n != 3 {
		t.Errorf("%d devices", n)
	}
}

// TestHostileGhosts: identities that have not been seen for long are in no draw and
// hold up no round; one that comes back is drawn again.
func TestHostileGhosts(t *testing.T) {
	job := loud(4, 2)
	job.Deadlines.Gather = time.Hour
	dir, base := t.TempDir(), tinyBase(t)
	c, err := New(Config{Job: job, Dir: dir, Base: base, Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if _, err := c.store.Enrol([32]byte{1, byte(i), byte(i >> 8)}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := store.OpenFleet(dir)
	if err != nil {
		t.Fatal(err)
	}
	devices, err := f.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		if _, err := f.Forget(d.Identity); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	tb := setTable(t, Config{Job: job, Dir: dir, Base: base}, 4, nil)
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	for _, p := range tb.seen {
		if p.State == "gathering" && p.Cohort > 4 {
			t.Fatalf("a cohort of %d was drawn", p.Cohort)
		}
	}
}

// TestArithmetic: a job with fused arithmetic takes devices that have it, and none
// that lack it into its population.
func TestArithmetic(t *testing.T) {
	job := tinyJob(3)
	job.Training.Arithmetic = "fused"
	tb := setTable(t, Config{Job: job}, 3, nil)
	for _, p := range tb.players {
		p.fused = true
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	without := newPlayer(t, tb.token)
	if err := enrolled(t, ctx, without); !refusedWith(err, wire.CodeArithmetic) || !strings.Contains(err.Error(), "training.arithmetic") {
		t.Errorf("a device without fused multiply-add: %v", err)
	}
	if known, err := tb.c.store.Knows(without.id()); known || err != nil {
		t.Errorf("the refused device is enrolled: %v, %v", known, err)
	}
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
}
