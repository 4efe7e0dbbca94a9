package operator

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
)

type memorizationFlags struct {
	auditedFlags
	ask []string
}

func newAuditMemorizationCmd(a *command.App) *cobra.Command {
	var f memorizationFlags
	cmd := &cobra.Command{
		Use:   "memorization --checkpoint DIR --members FILE --others FILE",
		Short: "Ask a released model for answers that were removed from the documents",
		Long: `Ask a released model questions about documents of members and of others, as they are
and with every match of the answer removed, exact or near, whole or in parts (Tito et
al. 2023, section 5.1). Answers that are still right were remembered, or follow from
what is left; the others say how much the latter is. Exact match and ANLS, of all
questions and of those answered with a confidence of .9 or more, for the released model
and the base; and by key, where the files name what a question asks for ("key").

With --ask KEY others' documents that do not print it are asked for it, and answers that
are a member's are counted (appendix D.1.4): no answer is written down. Pages' pictures
("image") are blurred where removed words stand; a question about one whose words have
no boxes is left out.`,
		Example: `  starling audit memorization --checkpoint run/checkpoint --members in.jsonl --others out.jsonl --html memory.html
  starling audit memorization --checkpoint run/checkpoint --members in.jsonl --others out.jsonl --ask "tax number" --ask "registration id"`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	f.add(cmd)
	cmd.Flags().StringArrayVar(&f.ask, "ask", nil, "key that others' documents are asked for where they do not print it (repeatable)")
	return cmd
}

func (f *memorizationFlags) run(ctx context.Context, a *command.App) error {
	audit, err := f.open(a)
	if err != nil {
		return err
	}
	report, err := audit.Memorization(ctx, f.ask)
	if err != nil {
		return err
	}
	return f.emit(a, report, report.Dossier())
}
