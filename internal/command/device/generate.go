package device

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/bases"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/engine"
	"github.com/starling-fl/starling/internal/generation"
	"github.com/starling-fl/starling/internal/terminal"
	"github.com/starling-fl/starling/internal/usage"
)

// contextDefault is how many tokens a text has at most, where the base has room for as many.
const contextDefault = 1024

// maxPrompt bounds a line of standard input, in bytes.
const maxPrompt = 1 << 20

// Generated is what generate reports of each prompt.
type Generated struct {
	Prompt string `json:"prompt"`
	generation.Text
}

func newGenerateCmd(a *command.App, choice engine.Flags) *cobra.Command {
	var (
		dir, at, prompt, listen, system string
		talk                            bool
		most                            int // tokens of a text
	)
	r := generation.Request{Sampling: generation.Sampling{TopP: 1, Repetition: 1}}
	cmd := &cobra.Command{
		Use:   "generate --checkpoint DIR [--prompt TEXT | --listen ADDRESS]",
		Short: "Write texts on with a released adapter",
		Long: `Write behind a prompt with the adapter of a checkpoint folder whose task is causal, at
a rank; without --rank at the one that validation chose. Without --prompt each line
of standard input is one; at a terminal the next is asked for, and what is written
appears as it comes. The likeliest token comes next, as transformers' generate has it
with do_sample=False; --temperature above 0 draws it, by --seed always the same. A text
ends where the model ends it, before the first of --stop, or after --max-tokens.

With --chat each line is said in one conversation, laid out by the base's template
(chat_template), which the model goes on with; --system is said before.

With --listen it answers OpenAI's /v1/completions, /v1/chat/completions and /v1/models
over HTTP instead, to this machine alone (127.0.0.1:8000), one text at a time, "stream"
included.`,
		Example: "  starling generate --checkpoint run1/checkpoint --prompt \"turn on the light\"\n" +
			"  starling generate --checkpoint run1/checkpoint --listen 127.0.0.1:8000",
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case listen != "" && cmd.Flags().Changed("prompt"):
				return usage.Errorf("--prompt and --listen: give one of them")
			case listen != "" && talk:
				return usage.Errorf("--chat and --listen: conversations are answered there without --chat")
			case system != "" && !talk:
				return usage.Errorf("--system is said in a conversation: give --chat")
			case r.Validate() != nil:
				return usage.Wrap(r.Validate())
			}
			ck, err := bases.Released(dir)
			if err != nil {
				return err
			}
			rank, err := bases.Rank(ck, at)
			if err != nil {
				return err
			}
			positions := ck.Base.Config.MaxTokens()
			if !cmd.Flags().Changed("context") {
				most = min(most, positions)
			}
			if most < 2 || most > positions {
				return usage.Errorf("--context is %d, want 2..%d, the positions of the base", most, positions)
			}
			e, err := choice.Open()
			if err != nil {
				return err
			}
			m, err := generation.Open(e.Backend, ck, rank, most)
			if err != nil {
				return err
			}
			switch {
			case listen != "":
				return generation.Serve(cmd.Context(), m, listen, r, func(url string) error {
					_, err := fmt.Fprintf(a.Stderr, "listening on %s/v1/completions and /v1/chat/completions; interrupt to end\n", url)
					return err
				})
			case talk:
				c := newConversation(a, m, r, system)
				if cmd.Flags().Changed("prompt") {
					return c.say(cmd.Context(), prompt)
				}
				return lines(cmd.Context(), a, c.say)
			case cmd.Flags().Changed("prompt"):
				return writeBehind(cmd.Context(), a, m, prompt, r)
			}
			return lines(cmd.Context(), a, func(ctx context.Context, line string) error { return writeBehind(ctx, a, m, line, r) })
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&dir, "checkpoint", "", "folder of a released adapter")
	fl.StringVar(&at, "rank", "best", "rank to use, or best: the one that validation chose")
	fl.StringVar(&prompt, "prompt", "", "text to write behind, in place of lines of standard input")
	fl.StringVar(&listen, "listen", "", "answer /v1/completions and /v1/chat/completions at this loopback host:port instead")
	fl.BoolVar(&talk, "chat", false, "talk: each line is said in one conversation, by the base's template")
	fl.StringVar(&system, "system", "", "with --chat: what the model is told before")
	fl.IntVar(&most, "context", contextDefault, "most tokens of a text, its prompt among them, or as many as the base has positions")
	fl.IntVar(&r.Most, "max-tokens", 128, "most tokens to write behind a prompt")
	fl.Float64Var(&r.Temperature, "temperature", 0, "draw the next token, from scores divided by this; 0: the likeliest")
	fl.IntVar(&r.TopK, "top-k", 0, "draw among so many likeliest tokens; 0: all")
	fl.Float64Var(&r.TopP, "top-p", 1, "draw among the fewest likeliest tokens that together have this probability")
	fl.Float64Var(&r.Repetition, "repetition-penalty", 1, "divide the scores of tokens that stand in the text, where above 0; 1: none")
	fl.Uint64Var(&r.Seed, "seed", 1, "of the tokens that are drawn")
	fl.StringArrayVar(&r.Stops, "stop", nil, "text before which what is written ends (repeatable)")
	choice.Add(fl)
	return cmd
}

// writeBehind writes behind one prompt.
func writeBehind(ctx context.Context, a *command.App, m *generation.Model, prompt string, r generation.Request) error {
	r.Prompt = prompt
	_, err := emit(a, prompt, func(each func(string) error) (generation.Text, error) { return m.Write(ctx, r, each) })
	return err
}

// emit says what write writes behind a prompt, as it comes or as one object.
func emit(a *command.App, prompt string, write func(each func(string) error) (generation.Text, error)) (generation.Text, error) {
	if a.JSON {
		t, err := write(nil)
		if err != nil {
			return t, err
		}
		return t, a.Emit(Generated{prompt, t}, func(io.Writer) error { return nil })
	}
	t, err := write(func(part string) error {
		_, err := io.WriteString(a.Stdout, terminal.Visible(part, "\n\t"))
		return err
	})
	if err != nil {
		return t, err
	}
	_, err = fmt.Fprintln(a.Stdout)
	return t, err
}

// conversation is one in a terminal.
type conversation struct {
	a        *command.App
	m        *generation.Model
	r        generation.Request
	messages []said
}

// said is a message.
type said struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func newConversation(a *command.App, m *generation.Model, r generation.Request, system string) *conversation {
	c := &conversation{a: a, m: m, r: r}
	if system != "" {
		c.messages = append(c.messages, said{"system", system})
	}
	return c
}

// say says a line and what the model answers; both are of the conversation from then on.
func (c *conversation) say(ctx context.Context, line string) error {
	all := append(c.messages[:len(c.messages):len(c.messages)], said{"user", line})
	messages, err := json.Marshal(all)
	if err != nil {
		return err
	}
	t, err := emit(c.a, line, func(each func(string) error) (generation.Text, error) { return c.m.Chat(ctx, messages, nil, c.r, each) })
	if err == nil {
		c.messages = append(all, said{"assistant", t.Text})
	}
	return err
}

// lines are those of standard input, each of which is said.
func lines(ctx context.Context, a *command.App, say func(ctx context.Context, line string) error) error {
	ask := func() error { return nil }
	if terminal.Is(a.Stdin) {
		ask = func() error { _, err := fmt.Fprint(a.Stderr, "> "); return err }
	}
	typed := bufio.NewScanner(a.Stdin)
	typed.Buffer(make([]byte, 64<<10), maxPrompt)
	for {
		if err := ask(); err != nil {
			return err
		}
		if !typed.Scan() {
			if err := typed.Err(); errors.Is(err, bufio.ErrTooLong) {
				return fmt.Errorf("a prompt has more than %d bytes", maxPrompt)
			} else if err != nil {
				return fmt.Errorf("standard input: %w", err)
			}
			return ctx.Err()
		}
		if err := say(ctx, typed.Text()); err != nil {
			return err
		}
	}
}
