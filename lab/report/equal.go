package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/lab/sweep"
)

// equal says why the two sides of a statement are one computation by construction; "" if they are not. Such runs differ
// by the order of additions, and a claim that they hardly differ would be shown whatever the method does.
func equal(plan *sweep.Plan, s statement) (string, error) {
	of, err := settingsAt(plan, s.Of)
	if err != nil {
		return "", err
	}
	than, err := settingsAt(plan, s.Than)
	if err != nil {
		return "", err
	}
	var apart []string
	for key := range maps.Keys(union(of, than)) {
		if of[key] != than[key] {
			apart = append(apart, key)
		}
	}
	slices.Sort(apart)
	switch {
	case len(apart) == 0:
		return "both sides have the same settings", nil
	case slices.Equal(apart, []string{"training.dual"}) && everyone(of):
		return "every client takes part in each round and nothing is clipped, so dual variables cancel in the mean", nil
	}
	return "", nil
}

// settingsAt are the settings of a plan's first point at a place of its grid.
func settingsAt(plan *sweep.Plan, on map[string]string) (map[string]string, error) {
	for _, p := range plan.Points {
		at := without(p.On, seedAxis)
		for _, a := range plan.Axes {
			if a.Search {
				delete(at, a.Name)
			}
		}
		if maps.Equal(at, on) {
			return p.Settings.Flat()
		}
	}
	var known []string
	for _, a := range plan.Axes {
		known = append(known, a.Name)
	}
	return nil, fmt.Errorf("report: the grid has no point %v; its axes are %s", on, strings.Join(known, ", "))
}

// everyone reports whether each round's mean is that of all clients, as they sent it.
func everyone(settings map[string]string) bool {
	rate, err := strconv.ParseFloat(settings["sampling_rate"], 64)
	return err == nil && rate == 1 && settings["unclipped"] == "true" && settings["cohort"] == settings["population"]
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
