package commands

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/lab/voices"
)

func newVoicesCmd(a *command.App) *cobra.Command {
	c := voices.Config{Say: voices.SayWords, Speakers: 1503, Each: 20, Seed: 1, Rate: 16_000}
	var out, words string
	cmd := &cobra.Command{
		Use:   "voices --out DIR",
		Short: "Write recordings of generated voices, which espeak-ng speaks, to try things with",
		Long: `Write recordings of generated voices as WAV files of one channel and 16 bits: espeak-ng
(install it beside this program) speaks by some 600 voices, and each speaker has one, with a
pitch, a tempo, a throat, a room, a microphone and a noise of its own. They are nobody's
voice: what is learnt from them does not say how well people are understood.

--say words    the 30 words of Speech Commands, or those of --words FILE, one a line
      digits   zero to nine
      strings  three to seven digits
      intents  what a bank is asked: the 14 intents of MINDS-14, by templates

Words and digits are written as Speech Commands is: a folder for each, files named by their
speaker, validation_list.txt and testing_list.txt. Strings and intents are JSON Lines of
{"audio", "text", "user"}: train.jsonl, validation.jsonl, test.jsonl; of intents there are
train.intents.jsonl and so on, too, with "label" in place of "text". Of ten speakers one
validates and one tests, with voices of espeak-ng that no other has. With --flite half of
those that train speak by flite (install it, too), whose voices were made of people's. A second takes 32 kB at
the usual rate. The same command again makes what is missing.`,
		Example: "  starling lab voices --out words && starling simulate --data words --test words/testing_list.txt --base BASE\n  starling lab voices --out strings --say strings --speakers 300",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usage.Errorf("--out is required: the folder to write to")
			}
			if words != "" {
				data, err := named.Read(words, 1<<20)
				if err != nil {
					return err
				}
				if c.Words = strings.Fields(string(data)); len(c.Words) == 0 {
					return usage.Errorf("--words %s holds no words", words)
				}
			}
			left := terminal.NewCountdown(a.Stderr, "recordings", c.Speakers*c.Each)
			r, err := voices.Make(cmd.Context(), c, out, func(done, _ int) { left.Reach(done) })
			if errors.Is(err, voices.ErrConfig) {
				return usage.Wrap(err)
			}
			if err != nil {
				return err
			}
			return a.Emit(r, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%d recordings of %d generated speakers in %s (%s), %d of them made now, by %s\n",
					r.Recordings, r.Speakers, r.Folder, terminal.Bytes(r.Bytes), r.Made, r.Espeak)
				return err
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&out, "out", "", "folder to write to")
	fl.StringVar(&c.Say, "say", c.Say, "words, digits, strings or intents")
	fl.StringVar(&words, "words", "", "file of the words that are said, one a line, in place of the 30")
	fl.IntVar(&c.Speakers, "speakers", c.Speakers, "speakers")
	fl.IntVar(&c.Each, "each", c.Each, "recordings of each of them")
	fl.Uint64Var(&c.Seed, "seed", c.Seed, "seed of the generator")
	fl.IntVar(&c.Rate, "rate", c.Rate, "samples a second")
	fl.BoolVar(&c.Flite, "flite", false, "half of those that train speak by flite, whose four voices are made of people's recordings")
	fl.StringVar(&c.Program, "espeak", "", "the program espeak-ng (default the one that the shell finds)")
	return cmd
}
