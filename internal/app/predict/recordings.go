package predict

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// Transcript is the transcript of a recording.
type Transcript struct {
	Line        int     `json:"line"` // of the recordings, from 1
	Text        string  `json:"text"`
	Probability float64 `json:"probability"` // of the text over all ways to spell it, not calibrated
}

// saidOfRecording is the text that a recording's scores speak for.
func saidOfRecording(e dataset.Example, k task.Transcriber, scores []float32) said {
	labels := k.Choice().Predicted(scores)
	t := Transcript{e.Line, k.Text(labels), k.Probability(scores, labels)}
	return said{t, terminal.Visible(t.Text, "") + "\n"}
}

// eachRecording calls each with the recordings of a file or a folder, and with their
// numbers, from 1.
func eachRecording(name string, each func(at int, r *dataset.Recording) error) error {
	if name == "" {
		return fmt.Errorf("give the name of a recording, .wav or .flac, or of a folder of them")
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		r, err := dataset.OpenRecording(name)
		if err != nil {
			return err
		}
		return each(1, r)
	}
	files, err := os.ReadDir(name)
	if err != nil {
		return err
	}
	n := 0
	for _, f := range files {
		if f.IsDir() || !audio.Named(f.Name()) {
			continue
		}
		r, err := dataset.OpenRecording(filepath.Join(name, f.Name()))
		if err == nil {
			n++
			err = each(n, r)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case n == 0 && slices.ContainsFunc(files, os.DirEntry.IsDir):
		return named.Errorf("%s: %w: its recordings are in folders: give one of those, or evaluate it, where each folder is a label", name, dataset.ErrEmpty)
	case n == 0:
		return named.Errorf("%s: %w: want .wav or .flac files", name, dataset.ErrEmpty)
	}
	return nil
}
