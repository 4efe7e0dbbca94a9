package coordinator

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/wasm/compiler"
	"github.com/starling-fl/starling/wasm/program"
)

// What a device makes of the announced job and the base it fetched is the
// program that the coordinator compiled, to the bit.
func TestRemakeIsTheCoordinatorsProgram(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Job){
		"plain":   func(*Job) {},
		"compact": func(j *Job) { j.Training.CompactBase = true },
		"memory":  func(j *Job) { j.Training.Memory = 64 },
		"sgd":     func(j *Job) { j.Training.Optimizer = "sgd" },
		"micro":   func(j *Job) { j.Training.MicroBatch = 2 },
		"bitfit":  func(j *Job) { j.Adapter.Method = "bitfit" },
	} {
		j := tinyJob(4)
		change(&j)
		core, err := core.New(j, b, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		announced, err := announce(core.Terms(), [16]byte{}, true)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := announced.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		received, err := wire.ParseJob(encoded)
		if err != nil {
			t.Fatal(err)
		}
		fetched, err := model.OpenBlob(core.Terms().BaseBlob, core.Terms().BaseBlob.Size())
		if err != nil {
			t.Fatal(err)
		}
		rank := core.Terms().Ranks()[0]
		sent, err := program.Step(program.Spec{Job: core.Terms().Job, Base: core.Terms().Base, Rank: rank, Host: program.Hosts[0], Compact: core.Terms().Compact})
		if err != nil {
			t.Fatal(err)
		}
		made, err := program.Remake(t.Context(), math.Inf(1), received.Name, received.Labels, received.Recipe, fetched, rank, program.Hosts[0])
		if err != nil || !bytes.Equal(made, sent) {
			t.Errorf("%s: %d bytes made of the recipe, %d compiled: %v", name, len(made), len(sent), err)
		}
		received.Recipe = append(bytes.TrimSuffix(received.Recipe, []byte("}")), `,"more":1}`...)
		if _, err := program.Remake(t.Context(), math.Inf(1), received.Name, received.Labels, received.Recipe, fetched, rank, program.Hosts[0]); err == nil {
			t.Errorf("%s: a recipe with a field that nobody knows", name)
		}
	}
}

// Where a program does not fit into training.memory the coordinator says so when it starts, and not once a round is drawn
// and paid for.
func TestMemoryThatDoesNotSufficeIsToldAtOnce(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	j := tinyJob(4)
	j.Training.Memory, j.Training.Batch = 64, 1<<12
	c, err := New(Config{Job: j, Dir: t.TempDir(), Base: b, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		_ = c.Close()
	}
	if !errors.Is(err, compiler.ErrMemory) || !strings.Contains(err.Error(), "training.memory is 64") {
		t.Errorf("%v", err)
	}
}
