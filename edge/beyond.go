package edge

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// notPrivate is the key of a PolicyError that stands for Config.AcceptNotPrivate.
const notPrivate = "not_private"

// Beyond lists what of an error is outside of the owner's policy: what an owner
// may accept, with Policy.Allow. It is empty for all other errors.
func Beyond(err error) (found []PolicyError) {
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
			found = append(found, Beyond(inner)...)
		}
	case interface{ Unwrap() error }:
		found = Beyond(e.Unwrap())
	}
	return found
}

// Allow widens the limit that a PolicyError names to what it says was asked for:
// key and have are its Key and Have.
func (p *Policy) Allow(key, have string) error {
	whole := map[string]*int{"shard": &p.Shard, "breach_bits": &p.BreachBits, "rank": &p.Rank, "steps": &p.Steps, "batch": &p.Batch, "memory": &p.Memory, "rounds": &p.Rounds,
		"values": &p.Values, "examples": &p.Examples}
	fraction := map[string]*float64{"corrupt": &p.Corrupt, "clip_norm": &p.ClipNorm, "work": &p.Work, "own_noise": &p.OwnNoise, "bits": &p.Bits}
	var err error
	switch {
	case whole[key] != nil:
		*whole[key], err = strconv.Atoi(have)
	case fraction[key] != nil:
		*fraction[key], err = strconv.ParseFloat(have, 64)
	case key == "uplinks" && have != anything: // which a coordinator may announce, and is no scheme
		p.Uplinks = append(p.Uplinks[:len(p.Uplinks):len(p.Uplinks)], have)
	case key == "tensors":
		p.Tensors = slices.Clone(p.Tensors)
		for name := range strings.SplitSeq(have, ",") {
			if name != anything && !slices.Contains(p.Tensors, name) {
				p.Tensors = append(p.Tensors, name)
			}
		}
	case key == "semi_honest":
		p.SemiHonest, err = strconv.ParseBool(have)
	default:
		return fmt.Errorf("%w: policy: %.80q is not a limit that can be widened", ErrConfig, key)
	}
	if err != nil {
		return fmt.Errorf("%w: policy: %s: %.80q is no value of it", ErrConfig, key, have)
	}
	return p.Validate()
}

// Allow widens what the configuration's owner accepts, the policy or
// AcceptNotPrivate, as Policy.Allow does. The policy must be set.
func (c *Config) Allow(key, have string) error {
	if key == notPrivate {
		c.AcceptNotPrivate = have == "true"
		return nil
	}
	return c.Policy.Allow(key, have)
}
