package generation

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// maxPrompt bounds a line of standard input, in bytes.
const maxPrompt = 1 << 20

// generated is what is reported of each prompt.
type generated struct {
	Prompt string `json:"prompt"`
	Text
}

// Say writes behind a line, to the streams it was made with: as it comes, or as one object.
type Say func(ctx context.Context, line string) error

// Behind writes behind each line for itself, as r asks for it.
func Behind(to *terminal.Streams, m *Model, r Request) Say {
	return func(ctx context.Context, line string) error {
		r.Prompt = line
		_, err := emit(to, line, func(each func(Part) error) (Text, error) { return m.Write(ctx, r, each) })
		return err
	}
}

// turn is one of a conversation.
type turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Conversation says each line in one conversation, laid out by the base's template, which the model goes on
// with; system, if it is not empty, is said before.
func Conversation(to *terminal.Streams, m *Model, r Request, system string) Say {
	var messages []turn
	if system != "" {
		messages = append(messages, turn{"system", system})
	}
	return func(ctx context.Context, line string) error {
		all := append(messages[:len(messages):len(messages)], turn{"user", line})
		laid, err := json.Marshal(all)
		if err != nil {
			return err
		}
		t, err := emit(to, line, func(each func(Part) error) (Text, error) { return m.Chat(ctx, laid, nil, r, each) })
		if err == nil {
			messages = append(all, turn{"assistant", t.Text})
		}
		return err
	}
}

// emit says what write writes behind a prompt.
func emit(to *terminal.Streams, prompt string, write func(each func(Part) error) (Text, error)) (Text, error) {
	if to.JSON {
		t, err := write(nil)
		if err != nil {
			return t, err
		}
		return t, to.Emit(generated{prompt, t}, nil)
	}
	t, err := write(func(part Part) error {
		_, err := io.WriteString(to.Stdout, terminal.Visible(part.Text, "\n\t"))
		return err
	})
	if err != nil {
		return t, err
	}
	_, err = fmt.Fprintln(to.Stdout)
	return t, err
}

// Lines are the lines of standard input, each one a message.
func Lines(ctx context.Context, to *terminal.Streams, say Say) error {
	ask := func() error { return nil }
	if terminal.Is(to.Stdin) {
		ask = func() error { _, err := fmt.Fprint(to.Stderr, "> "); return err }
	}
	typed := bufio.NewScanner(to.Stdin)
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
