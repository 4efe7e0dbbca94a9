// Package calls generates commands as people speak them, and the calls of functions that they come to.
//
//	set, err := calls.Generate(calls.Config{Split: "train", Clients: 3, PerClient: 10})
package calls

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/leaf/seeded"
)

// Version names what Generate and Public make: it changes whenever a command for a seed
// does, and a base records it.
const Version = "starling-calls/1"

// Config says which part of the endless set of commands to make.
type Config struct {
	Seed      uint64
	Split     string // "train", "validation" or "test": splits share no speaker
	Clients   int    // how many speakers; their names go to dataset.Example.User
	PerClient int    // commands of each
	Functions int    // that are called, evenly from all of them; 0: all
}

// Generate makes commands as people speak them and the calls of functions that they come to, in
// JSON: each speaker has words of its own for deeds and things, and people whom it calls by
// name. Half of a speaker's words are those of Public. The same configuration
// gives the same set, and a speaker's commands do not depend on how many others there are.
func Generate(cfg Config) (*dataset.Set, error) {
	split := slices.Index(seeded.Splits, cfg.Split)
	if split < 0 {
		return nil, fmt.Errorf("dataset: commands: split is %q, want one of %q", cfg.Split, seeded.Splits)
	}
	if cfg.Clients < 1 || cfg.PerClient < 1 {
		return nil, fmt.Errorf("dataset: commands: clients %d and commands per client %d must both be at least 1", cfg.Clients, cfg.PerClient)
	}
	if cfg.Functions < 0 || cfg.Functions > len(functions) {
		return nil, fmt.Errorf("dataset: commands: functions is %d, want 0 (all) to %d", cfg.Functions, len(functions))
	}
	set := &dataset.Set{Name: "commands", Examples: make([]dataset.Example, 0, cfg.Clients*cfg.PerClient)}
	for client := range cfg.Clients {
		s := newCaller(cfg.Seed, uint64(split), uint64(client))
		for range cfg.PerClient {
			e := s.command(cmp.Or(cfg.Functions, len(functions)))
			e.User = fmt.Sprintf("%s-%d", cfg.Split, client)
			set.Examples = append(set.Examples, e)
		}
	}
	return set, nil
}

// Public is an endless sequence of commands in words that everybody uses, of no speaker
// of Generate.
func Public(seed uint64) iter.Seq[dataset.Example] {
	return func(yield func(dataset.Example) bool) {
		for i := uint64(0); ; i++ {
			s := newCaller(seed, seeded.PublicSplit, i)
			for range 4 {
				if !yield(s.command(len(functions))) {
					return
				}
			}
		}
	}
}

// privateShare is how many of its words a caller has to itself.
const privateShare = 0.5

// caller is one who gives commands.
type caller struct {
	rng    *rand.Rand
	own    float64 // chance of a private word
	deeds  map[string]string
	things map[string]string
	open   string
	close  string
	people []string
}

func newCaller(seed, split, n uint64) *caller {
	rng := seeded.Source(seed, 0x1a, split, n)
	s := &caller{rng: rng, deeds: map[string]string{}, things: map[string]string{}}
	if split != seeded.PublicSplit {
		s.own = privateShare
	}
	// Of every deed and thing a speaker has one private word, drawn in one order.
	for _, f := range functions {
		if s.deeds[f.deed] == "" {
			s.deeds[f.deed] = seeded.Pick(rng, deeds[f.deed].private)
		}
		if s.things[f.thing] == "" {
			s.things[f.thing] = seeded.Pick(rng, things[f.thing].private)
		}
	}
	s.open, s.close = seeded.Pick(rng, openers.private), seeded.Pick(rng, closers.private)
	for i := range uint64(4) {
		s.people = append(s.people, seeded.ProperName(4*(4*n+i)+split))
	}
	return s
}

// says is a speaker's own word, or one of everybody's.
func (s *caller) says(own string, of wording) string {
	if s.rng.Float64() < s.own {
		return own
	}
	return seeded.Pick(s.rng, of.public)
}

// command is one that calls one of so many functions, and the call that it comes to.
func (s *caller) command(of int) dataset.Example {
	f := functions[s.rng.IntN(of)*len(functions)/of]
	words := []string{s.says(s.open, openers), s.says(s.deeds[f.deed], deeds[f.deed]), "the", s.says(s.things[f.thing], things[f.thing])}
	arguments := make([]string, len(f.arguments))
	for _, i := range s.rng.Perm(len(f.arguments)) {
		name := f.arguments[i]
		spoken, written := s.value(name)
		way := 0
		if s.rng.Float64() < s.own {
			way = 1
		}
		words = append(words, fmt.Sprintf(phrases[name][way], spoken))
		arguments[i] = fmt.Sprintf("%q:%s", name, written)
	}
	words = append(words, s.says(s.close, closers))
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	return dataset.Example{Prompt: strings.Join(words, " "),
		Completion: fmt.Sprintf(`{"name":%q,"arguments":{%s}}`, f.name, strings.Join(arguments, ","))}
}

// value is an argument as it is spoken, and as JSON.
func (s *caller) value(name string) (spoken, written string) {
	switch name {
	case "minutes":
		spoken = strconv.Itoa(1 + s.rng.IntN(60))
		return spoken, spoken
	case "percent":
		spoken = strconv.Itoa(5 * (1 + s.rng.IntN(19)))
		return spoken, spoken
	case "time":
		spoken = fmt.Sprintf("%d %s", 1+s.rng.IntN(12), seeded.Pick(s.rng, []string{"am", "pm"}))
	case "person":
		spoken = seeded.Pick(s.rng, s.people)
	default:
		spoken = seeded.Pick(s.rng, values[name])
	}
	return spoken, strconv.Quote(spoken)
}
