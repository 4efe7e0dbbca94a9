package edge

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// notPrivate is the key of a PolicyError about Config.AcceptNotPrivate.
const notPrivate = "not_private"

// PolicyErrors lists the limits that an error is about, which the owner may widen with
// Policy.Allow. It is empty for all other errors.
func PolicyErrors(err error) (found []PolicyError) {
	if one := (*PolicyError)(nil); err == nil {
		return nil
	} else if errors.Is(err, ErrNotPrivate) {
		return []PolicyError{{Key: notPrivate, What: "the job says of itself that it is not private",
			Why: "Every secret of such a run is seeded: whoever runs it can read what you send", Have: "true", Want: "private jobs"}}
	} else if !errors.As(err, &one) {
		return nil
	}
	switch e := any(err).(type) { // as any: this walks the tree itself
	case *PolicyError:
		found = append(found, *e)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			found = append(found, PolicyErrors(inner)...)
		}
	case interface{ Unwrap() error }:
		found = PolicyErrors(e.Unwrap())
	}
	return found
}

// field is the limit of a key that Allow can widen; nil: it cannot.
func (p *Policy) field(key string) any {
	switch key {
	case "shard":
		return &p.Shard
	case "breach_bits":
		return &p.BreachBits
	case "rank":
		return &p.Rank
	case "values":
		return &p.Values
	case "steps":
		return &p.Steps
	case "batch":
		return &p.Batch
	case "memory":
		return &p.Memory
	case "rounds":
		return &p.Rounds
	case "examples":
		return &p.Examples
	case "corrupt":
		return &p.Corrupt
	case "clip_norm":
		return &p.ClipNorm
	case "start":
		return &p.Start
	case "work":
		return &p.Work
	case "own_noise":
		return &p.OwnNoise
	case "example_noise":
		return &p.ExampleNoise
	case "example_bits":
		return &p.ExampleBits
	case "bits":
		return &p.Bits
	case "leak":
		return &p.Leak
	case "uplinks":
		return &p.Uplinks
	case "tensors":
		return &p.Tensors
	case "bases":
		return &p.Bases
	case "semi_honest":
		return &p.SemiHonest
	case "unlogged":
		return &p.Unlogged
	}
	return nil
}

// limit is a key's limit as text, the same for the same limit alone.
func (p *Policy) limit(key string) string {
	switch limit := p.field(key).(type) {
	case *int:
		return strconv.Itoa(*limit)
	case *float64:
		return strconv.FormatFloat(*limit, 'g', -1, 64)
	case *bool:
		return strconv.FormatBool(*limit)
	case *[]string:
		return strings.Join(*limit, ",")
	}
	return ""
}

// Allow widens the limit that a PolicyError names to what it says was asked for:
// key and have are its Key and Have.
func (p *Policy) Allow(key, have string) error {
	var err error
	switch limit := p.field(key).(type) {
	case *int:
		*limit, err = strconv.Atoi(have)
	case *float64:
		*limit, err = strconv.ParseFloat(have, 64)
	case *bool:
		*limit, err = strconv.ParseBool(have)
	case *[]string:
		*limit = slices.Clone(*limit)
		for name := range strings.SplitSeq(have, ",") {
			if name == anything { // which a coordinator may announce, and is none
				return fmt.Errorf("%w: policy: %s: %q is more than the job asks for", ErrConfig, key, name)
			}
			if !slices.Contains(*limit, name) {
				*limit = append(*limit, name)
			}
		}
	default:
		return fmt.Errorf("%w: policy: %.80q is not a limit that can be widened", ErrConfig, key)
	}
	if err != nil {
		return fmt.Errorf("%w: policy: %s: %.80q is not a value of it", ErrConfig, key, have)
	}
	return p.Validate()
}

// Allow widens what the owner accepts, in the policy or AcceptNotPrivate, as Policy.Allow does. The
// policy must be set.
func (c *Config) Allow(key, have string) error {
	if key == notPrivate {
		c.AcceptNotPrivate = have == "true"
		return nil
	}
	return c.Policy.Allow(key, have)
}
