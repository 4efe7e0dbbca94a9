package attack

import (
	"context"
	"errors"
	"fmt"
)

// The turns of a device.
const (
	Advertise = 1 + iota
	Shares
	Masked
	Confirm
	Reveal
)

// chunk is how much of a masked vector travels in one frame.
const chunk = 1 << 18

// A Script is what a device does in a round. Its zero value is an honest device
// that adds zeros.
type Script struct {
	// Symbols are what it adds.
	Symbols func(m *Member) []int32
	// Spoil changes the pair of shares for a holder before it is sealed.
	Spoil func(holder int, pair []byte)
	// Say is asked what to send in place of a turn's honest message, or several; of
	// turn 3 they are whole masked messages. Nothing is silence. nil: honest.
	Say func(turn int, m *Member, honest []byte) [][]byte
	// Before is called before a turn is answered, and may hang up.
	Before func(turn int) error
}

// ErrSilent is a turn that is not answered.
var ErrSilent = errors.New("attack: silent")

// Outcomes of a round.
const (
	Committed = 1 + iota
	Abandoned
	Dropped
)

// Assigned says that the device is ready and waits for a plan.
func (d *Device) Assigned(ctx context.Context) (plan []byte, err error) {
	if err := d.Send(ctx, Ready, Array{}); err != nil {
		return nil, err
	}
	return d.Plan(ctx)
}

// Plan waits for a plan.
func (d *Device) Plan(ctx context.Context) (plan []byte, err error) {
	for {
		f, err := d.Next(ctx)
		switch {
		case err != nil:
			return nil, err
		case f.Kind == Assignment:
			return f.Bytes(0), nil
		case f.Kind == Finished:
			return nil, ErrFinished
		case f.Kind == Error:
			return nil, &SessionError{f.Uint(0), f.Text(1)}
		}
	}
}

// ErrFinished is the end of a job, a round's Take included.
var ErrFinished = errors.New("attack: the job is over")

// Take plays one round under a plan and returns how it ended for this device.
func (d *Device) Take(ctx context.Context, plan []byte, s Script) (outcome uint64, m *Member, err error) {
	if m, err = NewMember(d.Identity, d.JobBytes, plan); err != nil {
		return 0, nil, err
	}
	if err := d.say(ctx, m, s, Advertise, Encode(m.Advertise())); err != nil && !errors.Is(err, ErrSilent) {
		return 0, m, err
	}
	for {
		f, err := d.Next(ctx)
		if err != nil {
			return 0, m, err
		}
		switch f.Kind {
		case Outcome:
			return f.Uint(1), m, nil
		case Error:
			return 0, m, &SessionError{f.Uint(0), f.Text(1)}
		case Finished:
			return 0, m, ErrFinished
		case Turn:
			if err := d.answer(ctx, m, s, f); err != nil && !errors.Is(err, ErrSilent) {
				return 0, m, err
			}
		}
	}
}

// TakePart plays round after round until the job or the session ends, and returns
// how each ended for this device.
func (d *Device) TakePart(ctx context.Context, s Script) (outcomes []uint64, err error) {
	for {
		plan, err := d.Assigned(ctx)
		if err != nil {
			return outcomes, err
		}
		outcome, _, err := d.Take(ctx, plan, s)
		if err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, outcome)
	}
}

// answer is what follows from a turn of the coordinator's.
func (d *Device) answer(ctx context.Context, m *Member, s Script, f Frame) error {
	turn, payload := int(f.Uint(1)), f.Bytes(2)
	var honest []byte
	switch turn {
	case Advertise:
		if err := m.Roster(payload); err != nil {
			return err
		}
		shares, err := m.Shares(s.Spoil)
		if err != nil {
			return err
		}
		honest = Encode(shares)
	case Shares:
		if err := m.Delivery(payload); err != nil {
			return err
		}
		var symbols []int32
		if s.Symbols != nil {
			symbols = s.Symbols(m)
		}
		masked, err := m.Masked(symbols)
		if err != nil {
			return err
		}
		honest = masked
	case Masked:
		if err := m.Survivors(payload); err != nil {
			return err
		}
		honest = Encode(m.Confirm(m.U2, m.U3))
	case Confirm:
		reveal, err := m.Reveal()
		if err != nil {
			return err
		}
		honest = Encode(reveal)
	default:
		return fmt.Errorf("attack: turn %d of the coordinator", turn)
	}
	return d.say(ctx, m, s, turn+1, honest)
}

// say sends a turn, or what the script has in its place.
func (d *Device) say(ctx context.Context, m *Member, s Script, turn int, honest []byte) error {
	if s.Before != nil {
		if err := s.Before(turn); err != nil {
			return err
		}
	}
	messages := [][]byte{honest}
	if s.Say != nil {
		if messages = s.Say(turn, m, honest); messages == nil {
			return ErrSilent
		}
	}
	for _, b := range messages {
		if turn == Masked {
			if err := d.Upload(ctx, m.round, b); err != nil {
				return err
			}
			continue
		}
		if err := d.Send(ctx, Turn, Array{m.round, turn, b, 0}); err != nil {
			return err
		}
	}
	return nil
}

// Upload sends a masked message in chunks.
func (d *Device) Upload(ctx context.Context, round uint64, b []byte) error {
	for at := 0; at < len(b); at += chunk {
		part := b[at:min(at+chunk, len(b))]
		if err := d.Send(ctx, Update, Array{round, len(b), at, part}); err != nil {
			return err
		}
	}
	return nil
}

// Me is the device's place in its shard.
func (m *Member) Me() int { return m.me }

// Count is how many devices the shard has, once its roster is known.
func (m *Member) Count() int { return m.n }

// Round is the round's number.
func (m *Member) Round() uint64 { return m.round }
