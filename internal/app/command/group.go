package command

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/usage"
)

// What help lists commands under, in this order.
const (
	RunJob      = "Run a job:"
	TakePart    = "Take part:"
	UseModel    = "Use a model:"
	PlanPrivacy = "Plan privacy:"
	Laboratory  = "Laboratory:"
)

// In puts commands into a group of the help.
func In(group string, cmds ...*cobra.Command) []*cobra.Command {
	for _, c := range cmds {
		c.GroupID = group
	}
	return cmds
}

// AddMakers adds commands that write test data below the command lab, and refuses the names that they had beside it.
func AddMakers(root *cobra.Command, makers ...*cobra.Command) {
	var lab *cobra.Command
	for _, c := range root.Commands() {
		if c.Name() == "lab" {
			lab = c
		}
	}
	if lab == nil {
		lab = &cobra.Command{Use: "lab", Short: "Write generated data to try things with", GroupID: Laboratory}
		root.AddCommand(lab)
	}
	for _, c := range makers {
		lab.AddCommand(c)
		root.AddCommand(&cobra.Command{
			Use: c.Name(), Hidden: true, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return usage.Errorf("%s %s is %s now, with the same flags", root.Name(), c.Name(), c.CommandPath())
			},
		})
	}
}

// addGroups has the root's help list the groups that it has commands of.
func addGroups(root *cobra.Command) {
	for _, id := range []string{RunJob, TakePart, UseModel, PlanPrivacy, Laboratory} {
		if slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.GroupID == id }) {
			root.AddGroup(&cobra.Group{ID: id, Title: id})
		}
	}
}
