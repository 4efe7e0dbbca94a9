package participation

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/internal/leaf/strict"
)

// Policy holds an owner's limits. Precedence: Set, file, defaults.
type Policy struct {
	File       string                   // YAML; "" for none
	Set        func(*edge.Policy) error // what was given otherwise
	TrustLocal bool                     // the coordinator is the owner's own, on this machine
}

// Toward is the policy toward the coordinator of a token, and a note to the owner where it is laxer
// than elsewhere, or might be.
func (p *Policy) Toward(token string) (_ *edge.Policy, note string, err error) {
	policy, err := edge.PolicyFor(token, p.TrustLocal)
	switch {
	case err != nil:
		return nil, "", usage.Wrap(err)
	case p.TrustLocal:
		note = "you trust this coordinator as your own (--trust-local): shards of 3 devices are accepted, none of them is presumed invented, " +
			"and this device adds no noise of its own (--shard, --corrupt, --breach-bits, --own-noise, --example-bits, --bits, --examples, --tensors, --bases)"
	case edge.OnLoopback(token):
		note = "the address is on this machine, but a forwarded port leads elsewhere: the limits are those for a stranger's coordinator; " +
			"if you run it yourself, --trust-local accepts a small job of yours"
	}
	if p.File != "" {
		if policy, err = loadPolicy(p.File, edge.DefaultPolicy()); err != nil {
			return nil, "", err
		}
		note = ""
	}
	if err := p.Set(&policy); err != nil {
		return nil, "", err
	}
	if policy.Peers, err = namedPeers(policy.Peers); err != nil {
		return nil, "", err
	}
	if err := policy.Validate(); err != nil {
		return nil, "", usage.Wrap(err)
	}
	return &policy, note, nil
}

// loadPolicy reads a policy file over the defaults; an unknown key is refused
// with its line.
func loadPolicy(path string, p edge.Policy) (edge.Policy, error) {
	f, err := named.Once(path)
	if err != nil {
		return p, fmt.Errorf("policy: %w", err)
	}
	defer f.Close()
	if err := strict.Read(f, &p); err != nil {
		return p, fmt.Errorf("policy: %s: %w", path, err)
	}
	return p, p.Validate()
}

// identity is how one is written.
var identity = regexp.MustCompile(`^[0-9a-f]{64}$`)

// namedPeers puts the lines of a file in the place of @FILE. What is behind an
// identity, or a #, is a note.
func namedPeers(given []string) ([]string, error) {
	const most = 1 << 20
	var peers []string
	for _, p := range given {
		path, is := strings.CutPrefix(p, "@")
		if !is {
			peers = append(peers, p)
			continue
		}
		b, err := named.Read(path, most)
		if err != nil {
			return nil, fmt.Errorf("policy: peers: %w", err)
		}
		before, number := len(peers), 0
		for line := range strings.Lines(string(b)) {
			number++
			line, _, _ = strings.Cut(line, "#")
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			if !identity.MatchString(words[0]) {
				return nil, fmt.Errorf("policy: peers: %s: line %d: %.80q is not 64 hexadecimal digits in lower case", path, number, words[0])
			}
			peers = append(peers, words[0])
		}
		if len(peers) == before { // nobody named must not come to mean anybody
			return nil, fmt.Errorf("policy: peers: %s is empty", path)
		}
	}
	return peers, nil
}
