package operator

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/backup"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

func newBackupCmd(a *command.App) *cobra.Command {
	var dir, out string
	cmd := &cobra.Command{
		Use:   "backup --dir DIR --out FILE",
		Short: "Copy a coordinator's ledgers, keys and last release into one file, while it runs too",
		Long: `Copy the ledgers, the certificate's key and the last release of a coordinator, or of a
server with all of its jobs, into one file. The file holds secrets: its mode is 0600.

A copy made while serve runs is for reading, since serve goes on to spend. One made
while it is stopped, as before an upgrade, can be continued: see starling restore.`,
		Example: "  starling backup --dir run1 --out run1.backup\n  starling restore run1.backup --dir run2",
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if dir == "" || out == "" {
				return usage.Errorf("--dir and --out are required: the coordinator's folder, and the file to write")
			}
			about, err := backup.Make(dir, out, a.Version, time.Now())
			if errors.Is(err, fs.ErrExist) {
				return usage.Errorf("--out: %s is there already: give another name", out)
			}
			if err != nil {
				return err
			}
			return a.Emit(about, func(w io.Writer) error {
				if err := printBackup(w, about, out); err != nil || about.Running {
					return err
				}
				_, err := fmt.Fprintln(w, "no coordinator ran: until one does, this is the newest state, and starling restore --newest may go on from it")
				return err
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the coordinator's folder")
	cmd.Flags().StringVar(&out, "out", "", "the file to write; it must not be there")
	return cmd
}

func newRestoreCmd(a *command.App) *cobra.Command {
	var dir string
	var newest bool
	cmd := &cobra.Command{
		Use:   "restore FILE --dir DIR",
		Short: "Put a backup into a new folder: to read it, or with --newest to go on from it",
		Long: `Verify a backup and put it into a new folder. Its ledgers can be read and its last
release exported. serve refuses the folder: rounds that were released after the copy are
forgotten, and their privacy budget would be spent again.

With --newest serve goes on from it. Say so only if no coordinator has run since the copy
was made; a copy that was made while one ran is refused.`,
		Example: "  starling restore run1.backup --dir run2\n  starling restore run1.backup --dir run1 --newest",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("restore takes one file, got %d", len(args))
			}
			if dir == "" {
				return usage.Errorf("--dir is required: the folder to make")
			}
			about, err := backup.Restore(args[0], dir, newest)
			switch {
			case errors.Is(err, backup.ErrOccupied), errors.Is(err, backup.ErrBroken):
				return usage.Wrap(err)
			case errors.Is(err, backup.ErrNotNewest):
				return usage.Errorf("--newest: %w: restore it without, export the release, and start a new job", err)
			case err != nil:
				return err
			}
			return a.Emit(about, func(w io.Writer) error {
				if err := printBackup(w, about, dir); err != nil {
					return err
				}
				next := "to read: serve refuses it, and starling export --checkpoint DIR/checkpoint writes its last release"
				if newest {
					next = "serve goes on from it: use it nowhere else"
				}
				_, err := fmt.Fprintln(w, next)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the folder to make; it must be empty or not there")
	cmd.Flags().BoolVar(&newest, "newest", false, "no coordinator has run since the copy was made: serve may go on from it")
	return cmd
}

func printBackup(w io.Writer, about backup.About, at string) error {
	state := "while no coordinator ran"
	if about.Running {
		state = "while a coordinator ran"
	}
	_, err := fmt.Fprintf(w, "%s: %d ledgers, %d files, %s, copied at %s %s\n", at, len(about.Stores), len(about.Files),
		terminal.Bytes(about.Bytes()), about.Copied.Format(time.RFC3339), state)
	return err
}
