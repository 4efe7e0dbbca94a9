package command

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/internal/app/usage"
)

// Log is a service's log on standard error, as flags ask for it.
type Log struct {
	Format string // "text", "json", or "" for none
	Level  string // "debug", "info", "warn" or "error"; "" is info
}

// Flags adds --log and --log-level, and --verbose, which is --log text.
func (l *Log) Flags(fl *pflag.FlagSet) {
	fl.StringVar(&l.Format, "log", "", "log to standard error as text or json, an event a line; with json no progress is drawn")
	fl.StringVar(&l.Level, "log-level", "", "least level that is logged: debug, info, warn or error (default info)")
	fl.BoolFunc("verbose", "the same as --log text", func(text string) error {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		if on {
			l.Format = "text"
		}
		return nil
	})
}

// Logger is the log that was asked for; nil for none.
func (l *Log) Logger(w io.Writer) (*slog.Logger, error) {
	var o slog.HandlerOptions
	if l.Level != "" {
		var level slog.Level
		if err := level.UnmarshalText([]byte(l.Level)); err != nil || strings.ContainsAny(l.Level, "+-") {
			return nil, usage.Errorf("--log-level is %q: debug, info, warn or error", l.Level)
		}
		o.Level = level
		if l.Format == "" {
			l.Format = "text"
		}
	}
	switch l.Format {
	case "":
		return nil, nil
	case "text":
		return slog.New(slog.NewTextHandler(w, &o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, &o)), nil
	}
	return nil, usage.Errorf("--log is %q: text or json", l.Format)
}

// Drawn reports whether progress for people may be between the log's lines.
func (l *Log) Drawn() bool { return l.Format != "json" }
