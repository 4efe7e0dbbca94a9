package commands

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/lab/sweep"
)

// slowness is --slow: a share of the clients trains for longer than the others.
type slowness struct {
	share, factor float64
	train         time.Duration // of an ordinary client
}

// usualTrain is how long an ordinary device trains where --slow does not say.
const usualTrain = 20 * time.Second

// Set reads SHARE:FACTOR[:TIME]; String and Type complete it to a flag's value.
func (s *slowness) Set(text string) error {
	share, rest, _ := strings.Cut(text, ":")
	factor, train, timed := strings.Cut(rest, ":")
	*s = slowness{train: usualTrain}
	var err [3]error
	s.share, err[0] = strconv.ParseFloat(share, 64)
	s.factor, err[1] = strconv.ParseFloat(factor, 64)
	if timed {
		s.train, err[2] = time.ParseDuration(train)
	}
	if err != [3]error{} || !(s.share > 0 && s.share < 0.5) || !(s.factor >= 1 && s.factor <= 1e6) || s.train < time.Millisecond || s.train > 720*time.Hour {
		return fmt.Errorf("want SHARE:FACTOR or SHARE:FACTOR:TIME, a share below 0.5, a factor in 1..1e6 and how long others train, as in 0.3:20:%v", usualTrain)
	}
	return nil
}

func (s *slowness) String() string {
	if s.share == 0 {
		return ""
	}
	return fmt.Sprintf("%v:%v:%v", s.share, s.factor, s.train)
}

func (*slowness) Type() string { return "share:factor[:time]" }

// stragglers is what slow devices do to a job's rounds.
type stragglers struct {
	Slow    int     `json:"slow"` // of a round's cohort
	Cohort  int     `json:"cohort"`
	Factor  float64 `json:"factor"`
	Train   float64 `json:"train_seconds"`         // of the others
	Lasts   float64 `json:"round_seconds"`         // training in a round, as the job is
	Left    bool    `json:"left_out"`              // rounds end without the slow ones
	Share   float64 `json:"share"`                 // deadlines.slow with which none awaits them
	Instead float64 `json:"round_seconds_instead"` // with that share, or where the job has it without one
	Refused string  `json:"refused,omitempty"`     // why the job cannot have that share
	slow    float64 // deadlines.slow of the job
	// excluded is after how many rounds in a row that a device was cut off in it is excluded.
	excluded int
}

// in foretells the rounds of a simulation, and leaves out of it whom they would end without; nil without --slow.
func (s slowness) in(settings *sweep.Settings) (*stragglers, error) {
	if s.share == 0 {
		return nil, nil
	}
	j, err := settings.Deployed()
	if err != nil {
		return nil, err
	}
	out := s.of(j, max(1, int(j.ExpectedCohort()+0.5)))
	if out.Left {
		settings.Slow = s.share
	}
	return out, nil
}

// of foretells the rounds of a job whose cohorts have so many devices.
func (s slowness) of(j job.Job, cohort int) *stragglers {
	slow := int(s.share*float64(cohort) + 1e-9)
	lasts, left := j.Deadlines.Stragglers(cohort, slow, s.train, s.factor)
	other := j
	other.Deadlines.Slow = 0
	excluded := 6 // see strikes: of a deadline that follows the fleet
	if lasts == j.Deadlines.Collect {
		excluded = 3
	}
	out := &stragglers{excluded: excluded, Slow: slow, Cohort: cohort, Factor: s.factor, Train: s.train.Seconds(), Lasts: lasts.Seconds(), Left: left,
		Share: min(0.49, math.Ceil(100*float64(slow)/float64(cohort)-1e-9)/100), slow: j.Deadlines.Slow}
	if j.Deadlines.Slow == 0 || !left {
		other.Deadlines.Slow = out.Share
	}
	if err := cmp.Or(j.CheckSlow(), other.CheckSlow()); err != nil {
		out.Refused = err.Error()
	}
	instead, _ := other.Deadlines.Stragglers(cohort, slow, s.train, s.factor)
	out.Instead = instead.Seconds()
	return out
}

// say is what an operator should know.
func (s *stragglers) say(line func(format string, args ...any)) {
	seconds := func(x float64) time.Duration {
		return time.Duration(x * float64(time.Second)).Round(100 * time.Millisecond)
	}
	const counts = "what they hold counts in no round: where slow devices hold other data than fast ones, the model leans to the fast"
	line("  slow devices    %d of a round's %d take %g times as long as the others' %v", s.Slow, s.Cohort, s.Factor, seconds(s.Train))
	switch {
	case s.Refused != "" && s.slow > 0:
		line("                  coordinators refuse this job: %s", s.Refused)
	case s.Left && s.slow > 0:
		line("                  rounds train for at most %v (deadlines.slow: %v), %v without it; %s", seconds(s.Lasts), s.slow, seconds(s.Instead), counts)
	case s.Left:
		line("                  rounds train for %v, the deadline, and the slow ones are left out, after %d such rounds excluded; %s", seconds(s.Lasts), s.excluded, counts)
	case s.Lasts <= s.Instead:
		line("                  rounds train for %v and wait for all of them", seconds(s.Lasts))
	case s.Refused == "":
		line("                  rounds train for %v and wait for all of them; with deadlines.slow: %v for at most %v, and then %s", seconds(s.Lasts), s.Share, seconds(s.Instead), counts)
	default:
		line("                  rounds train for %v and wait for all of them; this job cannot go on without them: %s", seconds(s.Lasts), s.Refused)
	}
}
