package store

import (
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Terms are the settings behind Options.Job, key by key, so that a job that was changed can be told
// what was changed. Zero and empty keys are left out. Nothing is decided by them.
type Terms struct {
	Given   map[string]string `json:"given"`   // as the job file has them, or by default
	Derived map[string]string `json:"derived"` // with what follows from others and from the base
}

const (
	mostChanges = 8  // that are named
	mostValue   = 80 // bytes of a value
)

// changed names the keys that were given another value since; where none was, those that
// follow otherwise than they did.
func (t Terms) changed(now Terms) []string {
	out := t.differences(now, t.Given, now.Given)
	if len(out) == 0 {
		out = t.differences(now, t.Derived, now.Derived)
	}
	if n := len(out); n > mostChanges {
		out = append(out[:mostChanges], fmt.Sprintf("and %d more", n-mostChanges))
	}
	return out
}

// differences shows the keys of which two maps differ.
func (t Terms) differences(now Terms, was, is map[string]string) (out []string) {
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if was[key] != is[key] {
			out = append(out, fmt.Sprintf("%s: %s in the folder, %s in the file", key, t.show(key), now.show(key)))
		}
	}
	return out
}

// show is what came of a key.
func (t Terms) show(key string) string {
	value := t.Derived[key]
	if value == "" {
		return "not set"
	}
	if len(value) > mostValue {
		value = strings.ToValidUTF8(value[:mostValue], "") + "..."
	}
	if t.Given[key] != t.Derived[key] {
		value += " (which follows)"
	}
	return value
}

// checkJob refuses the folder of another job, and says which key changed where the folder
// has them; one that has none gets them.
func (s *Store) checkJob(tx *sql.Tx) error {
	task, err := getMeta(tx, "task")
	if err != nil {
		return err
	}
	job, err := getMeta(tx, "job")
	if err != nil {
		return err
	}
	kept, err := getMeta(tx, "terms")
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if job == hex.EncodeToString(s.opt.Job[:]) {
		if s.opt.Terms.Given == nil {
			return nil
		}
		b, err := json.Marshal(s.opt.Terms)
		if err != nil {
			return err
		}
		return setMeta(tx, "terms", string(b))
	}
	what := "an earlier version began it and did not store the job's keys, so the changed ones are unknown"
	var was Terms
	if err == nil && json.Unmarshal([]byte(kept), &was) == nil {
		what = "no key of it changed, but what this version makes of them"
		if changes := was.changed(s.opt.Terms); len(changes) > 0 {
			what = strings.Join(changes, "; ")
		}
	}
	return fmt.Errorf("%w: it holds task %q (job %.8s), this one is %q (job %.8s): %s. Put it back, or give the changed job a folder of its own",
		ErrOtherJob, task, job, s.opt.Task, hex.EncodeToString(s.opt.Job[:]), what)
}
