package prospect

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/lab/sweep"
	"github.com/starling-fl/starling/model"
)

// Fleet describes the planned fleet.
type Fleet struct {
	Name     string   `json:"name"`             // of the job
	Labels   []string `json:"labels,omitempty"` // of the data; none where nothing is classified
	Task     string   `json:"task,omitempty"`   // "": the base's own
	Base     string   `json:"base,omitempty"`   // as the job file names it; "": embedded
	Devices  int      `json:"devices"`          // all that may ever take part
	Examples int      `json:"examples"`         // that one holds, on average
	Rounds   int      `json:"rounds"`
	From     string   `json:"protect_from"` // a name of [Adversaries]: from whom devices are protected

	fitted []key // by Fit
}

// An Adversary is one that devices are protected from, and the mechanism that does it.
type Adversary struct {
	Name      string // as --protect-from has it
	Mechanism string // privacy.noise; "": none
	Says      string // who adds the noise, for the job file
}

// Adversaries are all that can be chosen, the weakest protection last.
var Adversaries = []Adversary{
	{"public", job.NoiseCentral, "the coordinator adds the noise: it is trusted to"},
	{"coordinator", job.NoiseDevices, "devices add the noise: honest ones together hide each from the coordinator"},
	{"everyone", job.NoiseSilo, "each device adds all of the noise: for a few organisations"},
	{"nobody", "", "no noise and no claim: devices join with --accept-not-private"},
}

func (f Fleet) adversary() Adversary {
	i := slices.IndexFunc(Adversaries, func(a Adversary) bool { return a.Name == f.From })
	return Adversaries[i]
}

// Check refuses impossible fleets; its errors name flags.
func (f Fleet) Check() error {
	switch {
	case f.Devices < 2 || f.Devices > job.MaxPopulation:
		return usage.Errorf("--devices is %d, want 2..%d", f.Devices, job.MaxPopulation)
	case f.Examples < 1 || f.Examples > 1<<20:
		return usage.Errorf("--examples is %d, want 1..%d", f.Examples, 1<<20)
	case f.Rounds < 1 || f.Rounds > 10_000:
		return usage.Errorf("--rounds is %d, want 1..10000", f.Rounds)
	case !slices.ContainsFunc(Adversaries, func(a Adversary) bool { return a.Name == f.From }):
		var names []string
		for _, a := range Adversaries {
			names = append(names, a.Name)
		}
		return usage.Errorf("--protect-from is %.40q, want %s", f.From, strings.Join(names, ", "))
	case f.Task != "" && !slices.Contains(model.TaskNames(), f.Task):
		return usage.Errorf("--task is %.40q, want one of %q", f.Task, model.TaskNames())
	}
	return nil
}

// All devices take part in each round up to this many, beyond it a share of them: sampling then hides who did.
const allUpTo = 2000

// Rate is the share of the devices that takes part in a round, rounded to two digits.
func (f Fleet) Rate() float64 {
	if f.Devices <= allUpTo {
		return 1
	}
	rate := max(0.01, 1000/float64(f.Devices))
	unit := math.Pow(10, math.Floor(math.Log10(rate))-1)
	return math.Round(rate/unit) * unit
}

// key is a line of the job file.
type key struct {
	name    string // dotted
	value   any
	comment string
}

// keys are those of the job with a target; epsilon 0 is none. They are without those that follow from the data.
func (f Fleet) keys(epsilon float64, of Adversary, comment string) []key {
	out := []key{{"rounds", f.Rounds, ""}}
	if f.Task != "" {
		out = append(out, key{"task", f.Task, ""})
	}
	out = append(out, f.fitted...)
	out = append(out, key{"cohort.population", f.Devices, "all that may ever take part: epsilon holds for so many"})
	if rate := f.Rate(); rate < 1 {
		out = append(out, key{"cohort.sampling_rate", rate, fmt.Sprintf("about %.0f of them in a round", rate*float64(f.Devices))})
	} else {
		out = append(out, key{"cohort.sampling_rate", 1, "everybody who is there, every round"})
	}
	if f.Devices >= 8 {
		out = append(out, key{"cohort.start", 0.8, "begin when so many have enrolled; others come in later"})
	}
	if f.Devices > job.Default().Cohort.MaxEnrolled {
		out = append(out, key{"cohort.max_enrolled", f.Devices, ""})
	}
	if epsilon == 0 || of.Mechanism == "" {
		return append(out, key{"privacy.none", true, of.Says})
	}
	out = append(out, key{"privacy.epsilon", epsilon, comment})
	return append(out, key{"privacy.noise", of.Mechanism, of.Says})
}

// Job makes the job of a target, and follows the remedies of refusals until nothing is refused.
func (f Fleet) Job(epsilon float64, of Adversary, comment string) (job.Job, []key, error) {
	keys := f.keys(epsilon, of, comment)
	for range 12 {
		j, err := job.Parse(strings.NewReader(f.file(keys)))
		remedy, ok := job.RemedyOf(err)
		if !ok {
			return j, keys, err
		}
		for _, c := range remedy {
			keys = slices.DeleteFunc(keys, func(k key) bool { return k.name == c.Key })
			if c.Value != nil {
				keys = append(keys, key{c.Key, c.Value, ""})
			}
		}
	}
	return job.Job{}, nil, fmt.Errorf("no job for %d devices was found that passes all checks: write one by docs/JOB.md", f.Devices)
}

// File returns the job file for an epsilon that nobody has tried; 0: none.
func (f Fleet) File(epsilon float64) (string, error) {
	_, keys, err := f.Job(epsilon, f.adversary(), "")
	return f.file(keys), err
}

// mostLines is how many lines the job file has at most.
const mostLines = 15

// file is the job file: top keys a line each, then sections, each a line where comments leave room for it.
func (f Fleet) file(keys []key) string {
	var b strings.Builder
	line := func(text, comment string) {
		if comment != "" {
			text = fmt.Sprintf("%-22s # %s", text, comment)
		}
		b.WriteString(text + "\n")
	}
	line(fmt.Sprintf("# By starling init, for %d devices of about %d examples; docs/JOB.md has all keys.", f.Devices, f.Examples), "")
	line("name: "+scalar(f.Name), "")
	if len(f.Labels) > 0 {
		var labels []string
		for _, l := range f.Labels {
			labels = append(labels, scalar(l))
		}
		line("labels: ["+strings.Join(labels, ", ")+"]", "")
	}
	if f.Base != "" {
		line("base: "+scalar(f.Base), "")
	}
	sections := map[string][]key{}
	var order []string
	for _, k := range keys {
		section, name, nested := strings.Cut(k.name, ".")
		if !nested {
			line(k.name+": "+scalar(k.value), k.comment)
			continue
		}
		if sections[section] == nil {
			order = append(order, section)
		}
		sections[section] = append(sections[section], key{name, k.value, k.comment})
	}
	for _, section := range order {
		in := sections[section]
		var flow []string
		said := false
		for _, k := range in {
			flow = append(flow, k.name+": "+scalar(k.value))
			said = said || k.comment != ""
		}
		if !said {
			line(section+": {"+strings.Join(flow, ", ")+"}", "")
			continue
		}
		line(section+":", "")
		for _, k := range in {
			line("  "+k.name+": "+scalar(k.value), k.comment)
		}
	}
	return b.String()
}

// scalar is a value as YAML reads it again: quoted where it could be read as something else.
func scalar(v any) string {
	text, ok := v.(string)
	if !ok {
		return fmt.Sprint(v)
	}
	plain := text != "" && text[0] != ' ' && text[len(text)-1] != ' '
	for i, r := range text {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		plain = plain && (letter || i > 0 && (r >= '0' && r <= '9' || strings.ContainsRune("_-./ ", r)))
	}
	if plain && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(text)) {
		return text
	}
	return fmt.Sprintf("%q", text)
}

// most is the largest cohort that is really trained in a trial; of larger ones the noise is scaled.
const most = 100

// Settings are the simulation of the job of those keys, over a data file. Of a job whose cohort is not trained whole
// z is the noise multiplier that gives a mean the noise of the deployment's.
func (f Fleet) Settings(data string, keys []key, seed uint64, z float64) (sweep.Settings, error) {
	s := sweep.DefaultSettings()
	s.Data, s.Population, s.SamplingRate, s.Examples, s.Seed, s.Every = data, f.Devices, f.Rate(), f.Examples, seed, 0
	scaled := f.scaled()
	if s.Cohort = most; !scaled {
		s.Cohort = 0
	}
	for _, k := range keys {
		switch {
		case k.name == "cohort.population" || k.name == "cohort.sampling_rate" || k.name == "cohort.start":
			continue
		case scaled && k.name == "privacy.noise":
			continue // few devices' own noise does not stand for many's: z does
		case scaled && (strings.HasPrefix(k.name, "shard.") || k.name == "cohort.floor" || k.name == "cohort.quorum"):
			continue // of the deployment's cohort, which few stand for
		}
		var err error
		if s, err = s.With(k.name, k.value); err != nil {
			return s, err
		}
	}
	s.Unclipped = s.Unprotected() // as simulate has it: a job without privacy clips nothing
	if scaled && z > 0 {
		return s.With("privacy.noise_multiplier", z)
	}
	return s, nil
}

// scaled reports whether few devices stand for a round's in trials.
func (f Fleet) scaled() bool { return f.Rate()*float64(f.Devices) > most }
