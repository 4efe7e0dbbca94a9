package peft

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/model"
)

// choice says which modules an adapter's configuration names, as PEFT's
// check_target_module_exists does.
type choice struct {
	target, exclude moduleNames
	layers          []int            // none: all of them
	places          []*regexp.Regexp // where a module's name has its layer
	saved           []string         // modules_to_save, which have no low-rank updates
}

// moduleNames are ends of modules' names, or one expression for whole ones.
type moduleNames struct {
	ends  []string
	whole *regexp.Regexp
}

func (n moduleNames) has(module string) bool {
	if n.whole != nil {
		return n.whole.MatchString(module)
	}
	return slices.ContainsFunc(n.ends, func(end string) bool { return module == end || strings.HasSuffix(module, "."+end) })
}

// read reports whether they are known.
func (n moduleNames) read() bool { return n.whole != nil || n.ends != nil }

// choice reads it; nil where it is not said in a way that is read here (an expression that
// only Python has, "all-linear"): then the file's tensors are all there is to go by.
func (p config) choice() (*choice, error) {
	c := &choice{saved: p.ModulesToSave}
	var err error
	if c.target, err = readModuleNames("target_modules", p.TargetModules); err != nil {
		return nil, err
	}
	if c.exclude, err = readModuleNames("exclude_modules", p.Exclude); err != nil {
		return nil, err
	}
	if !c.target.read() || p.Exclude != nil && !c.exclude.read() {
		return nil, nil
	}
	if c.layers, err = oneOrMore[int]("layers_to_transform", p.Layers); err != nil {
		return nil, err
	}
	patterns, err := oneOrMore[string]("layers_pattern", p.LayersPattern)
	if err != nil {
		return nil, err
	}
	expressions := []string{`^.*?\.[^.]*\.(?P<layer>\d+)\.`} // the first number of a name
	for i, pattern := range patterns {
		if i == 0 {
			expressions = nil
		}
		if len(pattern) > maxPatternLength || len(patterns) > maxPatterns {
			return nil, fmt.Errorf("%w: %s: layers_pattern has %d patterns, one of %d bytes, limits %d and %d", model.ErrPEFT, model.AdapterConfigFile,
				len(patterns), len(pattern), maxPatterns, maxPatternLength)
		}
		expressions = append(expressions, `^(?:^|.*?\.)`+pattern+`\.(?P<layer>\d+)\.`)
	}
	for _, e := range expressions {
		match, ok := compiled(e)
		if !ok {
			return nil, nil
		}
		c.places = append(c.places, match)
	}
	return c, nil
}

// compiled is an expression that Go has, too; ok is false for one that only Python has.
func compiled(expression string) (match *regexp.Regexp, ok bool) {
	match, err := regexp.Compile(expression)
	return match, err == nil
}

// readModuleNames reads a list of names or an expression; neither where it is one that
// Go does not read.
func readModuleNames(key string, value any) (n moduleNames, err error) {
	switch v := value.(type) {
	case nil:
	case string:
		if len(v) > maxPatternLength {
			return n, fmt.Errorf("%w: %s: %s is an expression of %d bytes, limit %d", model.ErrPEFT, model.AdapterConfigFile, key, len(v), maxPatternLength)
		}
		if v != "all-linear" {
			n.whole, _ = regexp.Compile(`^(?:` + v + `)$`)
		}
	default:
		if n.ends, err = oneOrMore[string](key, value); err == nil && len(n.ends) > maxPatterns {
			err = fmt.Errorf("%w: %s: %s has %d names, limit %d", model.ErrPEFT, model.AdapterConfigFile, key, len(n.ends), maxPatterns)
		}
	}
	return n, err
}

// has reports whether PEFT adapts a module of that name.
func (c *choice) has(module string) bool {
	saved := func(m string) bool {
		return strings.HasPrefix(module+".", m+".") || strings.Contains("."+module+".", "."+m+".")
	}
	switch {
	case c.exclude.has(module) || slices.ContainsFunc(c.saved, saved):
		return false
	case !c.target.has(module):
		return false
	case c.target.whole != nil || len(c.layers) == 0 || slices.Contains(c.target.ends, module):
		return true
	}
	for _, place := range c.places {
		if at := place.FindStringSubmatch(module); at != nil {
			layer, err := strconv.Atoi(at[place.SubexpIndex("layer")])
			return err == nil && slices.Contains(c.layers, layer)
		}
	}
	return false
}

// oneOrMore reads a value or a list of values; nil is none.
func oneOrMore[T any](key string, value any) (all []T, err error) {
	if value == nil {
		return nil, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(data, &all) == nil {
		return all, nil
	}
	var one T
	if json.Unmarshal(data, &one) != nil {
		return nil, fmt.Errorf("%w: %s: %s is %.80s, want one or a list of %T", model.ErrPEFT, model.AdapterConfigFile, key, data, one)
	}
	return []T{one}, nil
}
