package dataset

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Columns of a table of MINDS-14 (Gerz et al. 2021), one for each language, text/en-US.csv in
// the archive: where the recording is below the folder audio beside text, what recognition
// made of it, its translation, and what was meant.
const mindsFile, mindsText = "filepath", "text_asr"

var mindsIntent = []string{"intent_class", "intent"}

// transcripts reports whether a table of MINDS-14 is read for what is said in its recordings: where
// that column is named, and is not one of labels.
func (c Columns) transcripts() bool { return c.Label == "" && strings.EqualFold(c.Text, mindsText) }

// intentColumn reports whether a table's names are those of MINDS-14, and where the intent is.
func intentColumn(names []string) (at int, ok bool) {
	if find(names, mindsFile) < 0 || find(names, mindsText) < 0 {
		return 0, false
	}
	for _, name := range mindsIntent {
		if at := find(names, name); at >= 0 {
			return at, true
		}
	}
	return 0, false
}

// minds reads such a table: recordings labelled by their intents, or with their transcripts.
func (s *scanner) minds(in *bufio.Reader, sep rune) error {
	r := s.csv(in)
	r.Comma, r.TrimLeadingSpace, r.ReuseRecord = sep, true, true
	var header []string
	file, intent, text := 0, 0, 0
	for {
		row, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if header == nil {
			header = trimmed(row)
			file = find(header, mindsFile)
			intent, _ = intentColumn(header)
			text = find(header, mindsText)
			continue
		}
		line, _ := r.FieldPos(0)
		l := labelled{Label: strings.ToLower(strings.TrimSpace(row[intent]))}
		if s.columns.transcripts() {
			l = labelled{Text: strings.TrimSpace(strings.Clone(row[text])), Transcript: true} // a cell shares its record's memory
		}
		if l.Recording, err = s.mindsRecording(strings.TrimSpace(row[file])); err == nil {
			err = s.each(line, l)
		}
		if err != nil {
			return &LineError{s.name, line, err}
		}
	}
}

// mindsRecording opens a recording in the folder audio beside the table's, as the archive has
// it, or where unpackers put it.
func (s *scanner) mindsRecording(name string) (*Recording, error) {
	path := filepath.FromSlash(name)
	if !filepath.IsLocal(path) {
		return nil, fmt.Errorf("%s is %.80q, want a path within the folder audio", mindsFile, name)
	}
	folder := filepath.Dir(s.name)
	beside, audio := filepath.Join(folder, ".."), "audio"
	if filepath.Base(folder) == "text" && filepath.Base(filepath.Dir(folder)) == "text" { // text.zip, unpacked in a folder text
		beside, audio = filepath.Join(folder, "..", ".."), filepath.Join("audio", "audio")
	}
	var missing error
	for _, at := range []struct{ root, dir string }{{beside, audio}, {beside, filepath.Join(audio, "audio")}, {folder, "audio"}, {folder, ""}} {
		file, err := within(at.root, filepath.Join(at.dir, path))
		if err == nil {
			return OpenRecording(file)
		}
		missing = cmp.Or(missing, err)
	}
	return nil, fmt.Errorf("the recording is not there: want it in the folder audio beside that of the table: %w", missing)
}
