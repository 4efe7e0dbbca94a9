package operator

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/admin"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

func newDevicesCmd(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List, ban, pardon and forget a coordinator's devices",
		Long: `A device is named by the first digits of its identity, at least eight. A
coordinator may be running in the folder: it takes a change in before its next round.`,
	}
	cmd.AddCommand(newDevicesListCmd(a))
	var reason string
	ban := devicesCmd(a, "ban", "Exclude devices: no session, no round, until they are pardoned", "banned",
		func(f admin.Fleet, id string) (string, error) { return f.Ban(id, reason) })
	ban.Flags().StringVar(&reason, "reason", "", "why, for the list and the device")
	cmd.AddCommand(ban,
		devicesCmd(a, "pardon", "Take excluded devices in again, without their strikes", "pardoned", admin.Fleet.Pardon),
		devicesCmd(a, "forget", "Leave devices out of the population until they come again", "forgotten", admin.Fleet.Forget))
	return cmd
}

// devicesCmd changes the devices that it is given.
func devicesCmd(a *command.App, name, short, done string, change func(admin.Fleet, string) (string, error)) *cobra.Command {
	return eachCmd(a, name+" --dir DIR IDENTITY...", short, "the first digits of an identity", func(f admin.Fleet, arg string) (string, string, error) {
		id, err := change(f, arg)
		return id, done + " " + id, err
	})
}

func newDevicesListCmd(a *command.App) *cobra.Command {
	return listCmd(a, "List the enrolled devices", "identity\tenrolled\tseen\tinvitation\tstrikes\texcluded\tdeclined",
		admin.Fleet.Devices, deviceLine)
}

// deviceLine is a device's line of the table. A reason for an exclusion may hold what a
// device has said.
func deviceLine(d store.Device) string {
	seen, excluded := d.Seen.Format(time.DateTime), "no"
	if d.Seen.Unix() == 0 {
		seen = "forgotten"
	}
	if d.Excluded != "" {
		excluded = strconv.Quote(d.Excluded)
	}
	declined := "no"
	switch limit, is := wire.Limit(d.Declined); {
	case is && d.Seen.Unix() == 0:
		seen, declined = "left", limit
	case is:
		declined = fmt.Sprintf("%s (%d rounds, last in %d)", limit, d.DeclinedRounds, d.DeclinedRound)
	}
	return fmt.Sprintf("%.16s\t%s\t%s\t%d\t%d\t%s\t%s", d.Identity, d.Enrolled.Format(time.DateOnly), seen, d.Invitation, d.Strikes, excluded, declined)
}
