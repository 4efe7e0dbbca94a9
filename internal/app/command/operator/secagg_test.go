package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// runSecagg runs a secagg command and returns its standard output.
func runSecagg(asJSON bool, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := newSecaggCmd(&command.App{Streams: terminal.Streams{Stdout: &out, Stderr: &errs, JSON: asJSON}})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&errs)
	cmd.SetErr(&errs)
	err := cmd.Execute()
	return out.String(), err
}

func TestSecaggParamsJSON(t *testing.T) {
	for _, c := range []struct {
		args []string
		want map[string]float64
	}{
		{[]string{"--shard", "64", "--dropout", "0.15", "--corrupt", "0.05"}, map[string]float64{
			"threshold": 44, "shards": 16, "log2_breach": -48.76, "log2_breach_per_round": -44.76, "log2_breach_per_job": -33.80, "log2_shard_failure": -11.78}},
		{[]string{"--shard", "128", "--dropout", "0.3", "--corrupt", "0.1", "--semi-honest", "--threshold", "46", "--rounds", "1"}, map[string]float64{
			"threshold": 46, "shards": 8, "rounds": 1, "log2_breach": -48.14, "log2_shard_failure": -50.98}},
		{[]string{"--shard", "64", "--cohort", "64"}, map[string]float64{"threshold": 43, "shards": 1, "log2_breach": -41.89}},
		{[]string{"--shard", "64", "--population", "1024", "--threshold", "44"}, map[string]float64{"threshold": 44, "log2_breach": -55.774}},
		{[]string{"--shard", "1024"}, map[string]float64{"cohort": 1024, "shards": 1}},
	} {
		out, err := runSecagg(true, append([]string{"params"}, c.args...)...)
		if err != nil {
			t.Errorf("%v: %v", c.args, err)
			continue
		}
		var r map[string]any
		if err := json.Unmarshal([]byte(out), &r); err != nil || strings.Count(out, "\n") != 1 {
			t.Fatalf("%v: %v in %q", c.args, err, out)
		}
		for key, want := range c.want {
			if got, ok := r[key].(float64); !ok || math.Abs(got-want) > 0.005 {
				t.Errorf("%v: %s = %v, want %v", c.args, key, r[key], want)
			}
		}
	}
	// An impossible event has no logarithm.
	out, err := runSecagg(true, "params", "--corrupt", "0", "--dropout", "0")
	if err != nil || !strings.Contains(out, `"log2_breach":null`) || !strings.Contains(out, `"log2_shard_failure":null`) {
		t.Errorf("%q, %v", out, err)
	}
}

func TestSecaggParamsText(t *testing.T) {
	out, err := runSecagg(false, "params")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"threshold      44 of 64", "2^-48.8 per shard", "2^-33.8 per job of 2000 rounds", "at least 21 honest devices", "invented peers"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestSecaggParamsRefuses(t *testing.T) {
	for args, says := range map[string]string{
		"--dropout 0.3":                "fails with probability",
		"--shard 16 --corrupt 0.3":     "no threshold",
		"--threshold 40":               "take 44",
		"--shard 1":                    "shard 1 not in",
		"--dropout 2":                  "dropout 2 not in 0..1",
		"--cohort 10":                  "cohort 10 below one shard",
		"--corrupt -0.1":               "corrupt -0.1 not in 0..1",
		"--shard 2000 --population 10": "shard 2000",
	} {
		_, err := runSecagg(false, append([]string{"params"}, strings.Fields(args)...)...)
		var wrong usage.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", args, err, says)
		}
	}
}
