package device

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/completions"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/app/generation"
	"github.com/starling-fl/starling/internal/app/usage"
)

// contextDefault is how many tokens a text has at most, where the base has room for as many.
const contextDefault = 1024

func newGenerateCmd(a *command.App, choice engine.Flags) *cobra.Command {
	var (
		dir, base, at, prompt, system string
		talk                          bool
		most                          int // tokens of a text
		listen                        completions.Listening
		serve                         completions.Config
	)
	r := generation.Request{Sampling: generation.Sampling{TopP: 1, Repetition: 1}}
	cmd := &cobra.Command{
		Use:   "generate {--checkpoint DIR | --base DIR} [--prompt TEXT | --listen ADDRESS]",
		Short: "Write texts on with a released adapter",
		Long: `Write behind a prompt with the adapter of a checkpoint folder whose task is causal, at
a rank; without --rank at the one that validation chose. Without --prompt each line
of standard input is one; at a terminal the next is asked for, and what is written
appears as it comes. The likeliest token comes next, as transformers' generate has it
with do_sample=False; --temperature above 0 draws it, by --seed always the same. A text
ends where the model ends it, before the first of --stop, or after --max-tokens.

--base writes with a base that nobody has trained yet, to compare.

With --chat each line is said in one conversation, laid out by the base's template
(chat_template), which the model goes on with; --system is said before.

With --listen it answers OpenAI's /v1/completions, /v1/chat/completions and /v1/models
over HTTP instead, "stream" and "logprobs" included: lm-evaluation-harness evaluates it
(--model local-completions). With 127.0.0.1:8000 it answers this machine's programs. With
--tls-cert, --tls-key and --token-file it may listen at any address; requests then show
"Authorization: Bearer" with the token that the file holds.`,
		Example: "  starling generate --checkpoint run1/checkpoint --prompt \"turn on the light\"\n" +
			"  starling generate --checkpoint run1/checkpoint --listen 127.0.0.1:8000\n" +
			"  starling generate --base SmolLM2-135M-Instruct --chat",
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case listen.Address == "" && (listen.TokenFile != "" || listen.Cert != "" || listen.Key != ""):
				return usage.Errorf("--token-file, --tls-cert and --tls-key are of --listen")
			case listen.Address != "" && cmd.Flags().Changed("prompt"):
				return usage.Errorf("--prompt and --listen: give one of them")
			case listen.Address != "" && talk:
				return usage.Errorf("--chat and --listen: conversations are answered there without --chat")
			case system != "" && !talk:
				return usage.Errorf("--system is said in a conversation: give --chat")
			case r.Validate() != nil:
				return usage.Wrap(r.Validate())
			}
			if base != "" && (dir != "" || cmd.Flags().Changed("rank")) {
				return usage.Errorf("--base excludes --checkpoint and --rank: a base has no adapter")
			}
			released := bases.Released
			if base != "" {
				released = bases.Bare
			}
			ck, err := released(cmp.Or(base, dir))
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
			if m.Name == "" { // of an imported checkpoint, which no job has made
				m.Name = filepath.Base(filepath.Clean(cmp.Or(base, dir)))
			}
			if listen.Address != "" {
				log := slog.New(slog.NewTextHandler(a.Stderr, nil))
				return completions.Serve(cmd.Context(), m, listen, r, serve, log, func(url string) error {
					_, err := fmt.Fprintf(a.Stderr, "listening on %s/v1/completions and /v1/chat/completions; interrupt to end\n", url)
					return err
				})
			}
			say := generation.Behind(&a.Streams, m, r)
			if talk {
				say = generation.Conversation(&a.Streams, m, r, system)
			}
			if cmd.Flags().Changed("prompt") {
				return say(cmd.Context(), prompt)
			}
			return generation.Lines(cmd.Context(), &a.Streams, say)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&dir, "checkpoint", "", "folder of a released adapter")
	fl.StringVar(&base, "base", "", "decoder in Hugging Face layout, or its name in the local Hugging Face cache, without an adapter")
	fl.StringVar(&at, "rank", "best", "rank to use, or best: the one that validation chose")
	fl.StringVar(&prompt, "prompt", "", "text to write behind, in place of lines of standard input")
	fl.StringVar(&listen.Address, "listen", "", "answer /v1/completions and /v1/chat/completions at this host:port instead; off loopback with TLS and a token")
	fl.StringVar(&listen.TokenFile, "token-file", "", "with --listen, a file that holds the token that requests show as Authorization: Bearer")
	fl.StringVar(&listen.Cert, "tls-cert", "", "with --listen, a certificate chain in PEM; with --tls-key. A renewed one is read again")
	fl.StringVar(&listen.Key, "tls-key", "", "with --tls-cert, its key in PEM")
	fl.IntVar(&serve.Together, "together", 4, "with --listen, requests that are answered at once; each holds the keys and values of a text")
	fl.DurationVar(&serve.Longest, "time-limit", 10*time.Minute, "with --listen, how long a request may take once it is its turn")
	fl.BoolVar(&r.Marks, "special", false, "special tokens that a prompt spells, as <|im_start|>, are those, and no text")
	fl.BoolVar(&talk, "chat", false, "talk: each line is said in one conversation, by the base's template")
	fl.StringVar(&system, "system", "", "with --chat: what the model is told before")
	fl.IntVar(&most, "context", contextDefault, "most tokens of a text, its prompt among them, or as many as the base has positions")
	fl.IntVar(&r.Most, "max-tokens", 128, "most tokens to write behind a prompt")
	fl.Float64Var(&r.Temperature, "temperature", 0, "draw the next token, from scores divided by this; 0: the likeliest")
	fl.IntVar(&r.TopK, "top-k", 0, "draw among so many likeliest tokens; 0: all")
	fl.Float64Var(&r.TopP, "top-p", 1, "draw among the fewest likeliest tokens that together have this probability")
	fl.Float64Var(&r.Repetition, "repetition-penalty", 1, "divide positive scores of tokens already in the text by this; 1: off")
	fl.Uint64Var(&r.Seed, "seed", 1, "of the tokens that are drawn")
	fl.StringArrayVar(&r.Stops, "stop", nil, "text before which what is written ends (repeatable)")
	choice.Add(fl)
	return cmd
}
