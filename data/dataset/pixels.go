package dataset

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-fl/starling/data/audio"
)

// A table of pixels is CSV whose header has a column "label" or "class" and k*k
// others, or 3*k*k, and no texts: each row is a square image, grey or red, green and
// blue one after the other, in the order of the columns.

const (
	leastPixels = 16      // of a row: fewer are other numbers
	mostPixels  = 1 << 16 // of a row
	maxImage    = 64 << 20
)

// imageSide is the side and the channels of an image of n values, 0 where n is no
// square.
func imageSide(n int) (side, channels int) {
	for _, channels := range []int{1, 3} {
		for k := 1; k*k*channels <= n; k++ {
			if k*k*channels == n {
				return k, channels
			}
		}
	}
	return 0, 0
}

// pixelColumns says which columns of a header are pixels, and which is the label;
// nil if the table is none of pixels.
func (c Columns) pixelColumns(header []string) (pixels []int, label int) {
	if label = find(header, c.label()); label < 0 {
		label = find(header, "class")
	}
	if label < 0 || find(header, c.text()) >= 0 {
		return nil, -1
	}
	for i, name := range header {
		if i != label && !strings.EqualFold(name, "user") && !strings.EqualFold(name, "provider") {
			pixels = append(pixels, i)
		}
	}
	if side, _ := imageSide(len(pixels)); side == 0 || len(pixels) < leastPixels || len(pixels) > mostPixels {
		return nil, -1
	}
	return pixels, label
}

// pixelTable reads a table of pixels; the values are as they are in the file.
func (s *scanner) pixelTable(in *bufio.Reader, sep rune, header []string, pixels []int, label int) error {
	r := s.csv(in)
	r.Comma, r.ReuseRecord = sep, true
	side, channels := imageSide(len(pixels))
	user, provider := find(header, "user"), find(header, "provider")
	for first := true; ; first = false {
		row, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if first {
			continue
		}
		line, _ := r.FieldPos(0)
		l := labelled{Label: strings.Clone(strings.TrimSpace(row[label])), Image: newImage(side, side, channels)}
		if user >= 0 {
			l.User = strings.Clone(row[user])
		}
		if provider >= 0 {
			l.Provider = strings.Clone(row[provider])
		}
		for i, at := range pixels {
			v, err := strconv.ParseFloat(strings.TrimSpace(row[at]), 32)
			if err != nil || !(v >= 0 && v <= 255) {
				return &LineError{s.name, line, fmt.Errorf("column %q is %.20q, want a pixel of 0 to 255", header[at], row[at])}
			}
			l.Image.Pixels[i] = float32(v)
		}
		if err := s.each(line, l); err != nil {
			return &LineError{s.name, line, err}
		}
	}
}

// scalePixels brings a table's values to 0..1. The largest of the file says what it
// counts to: 1, 16 (as scanned digits do) or 255.
func scalePixels(examples []Example) {
	var most float32
	for _, e := range examples {
		if e.Image != nil && e.Image.read == nil {
			most = max(most, slices.Max(e.Image.Pixels))
		}
	}
	scale := float32(255)
	for _, s := range []float32{16, 1} {
		if most <= s {
			scale = s
		}
	}
	for _, e := range examples {
		if e.Image != nil && e.Image.read == nil {
			for i := range e.Image.Pixels {
				e.Image.Pixels[i] /= scale
			}
		}
	}
}

// loadFolder opens a folder of images or recordings: one folder a label, which names it.
// Of recordings named as in Speech Commands the speaker is the user; that data set's folder
// of noise is no label, and what its lists name is left out (loadList). Recordings named as in
// the Free Spoken Digit Dataset have their label in their name.
func loadFolder(path string) (*Set, error) {
	held, err := heldBack(path)
	if err != nil {
		return nil, err
	}
	return readFolder(path, path, func(entry string) bool { return !held[entry] })
}

// readFolder opens those files of a folder's folders that take asks for, by their path in it
// with a slash.
func readFolder(name, path string, take func(entry string) bool) (*Set, error) {
	var examples []Example
	var names []string
	left := map[string]int{}
	labels, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	distinct := 0
	add := func(file, label string) error {
		e, err := openFile(filepath.Join(path, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		if e == nil {
			left[leftKind(filepath.Base(file))]++
			return nil
		}
		if len(examples) > 0 && examples[0].Form() != e.Form() {
			return fmt.Errorf("%s: %s holds %s, and others hold %s: want one kind in a folder",
				path, file, e.Form().Description(), examples[0].Form().Description())
		}
		examples, names = append(examples, *e), append(names, label)
		return nil
	}
	for _, l := range labels {
		if digit, _, ok := spokenDigit(l.Name()); ok && !l.IsDir() {
			if err := add(l.Name(), digit); err != nil {
				return nil, err
			}
		}
		if !l.IsDir() || strings.HasPrefix(l.Name(), ".") || l.Name() == "_background_noise_" {
			continue
		}
		if distinct++; distinct > MaxLabels || len(l.Name()) > MaxLabel {
			return nil, fmt.Errorf("%s: want at most %d folders, each with a name of at most %d bytes", path, MaxLabels, MaxLabel)
		}
		files, err := os.ReadDir(filepath.Join(path, l.Name()))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if f.IsDir() || !take(l.Name()+"/"+f.Name()) {
				continue
			}
			if err := add(l.Name()+"/"+f.Name(), l.Name()); err != nil {
				return nil, err
			}
		}
	}
	if len(examples) == 0 {
		for _, l := range labels {
			if !l.IsDir() && isTable(l.Name()) {
				return nil, fmt.Errorf("%s: it is a folder, and %s in it a labelled file: give one of its files", path, l.Name())
			}
		}
		has := ""
		if kinds := leftOut(left); kinds != "" {
			has = "; it has " + kinds + " files, which are not read: convert them"
		}
		return nil, fmt.Errorf("%s: %w: want a folder for each label, with .png, .jpg or .pgm files in it, or .wav or .flac%s", path, ErrEmpty, has)
	}
	set := byName(name, examples, names)
	set.Left = leftOut(left)
	return set, nil
}

// leftKind is what a file that is no example is counted under; "" of one that systems write and people do not see.
func leftKind(name string) string {
	switch {
	case beside(name):
		return "._*"
	case strings.HasPrefix(name, "."), strings.EqualFold(name, "thumbs.db"), strings.EqualFold(name, "desktop.ini"):
		return ""
	}
	return fmt.Sprintf("%.12s", cmp.Or(strings.ToLower(filepath.Ext(name)), "unnamed"))
}

// leftOut lists kinds of files with how many there are.
func leftOut(left map[string]int) string {
	delete(left, "")
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(left)) {
		if all = append(all, fmt.Sprintf("%d %s", left[kind], kind)); len(all) == 12 && len(left) > 12 {
			all = append(all, "others")
			break
		}
	}
	return strings.Join(all, ", ")
}

// isTable reports whether a file is one of examples, a line each, by its name.
func isTable(name string) bool {
	name = strings.TrimSuffix(name, ".gz")
	return slices.Contains([]string{".jsonl", ".json", ".tsv", ".csv", ".txt"}, filepath.Ext(name))
}

// openFile is the example of a file without its label; nil if it is neither an image nor
// a recording by its name.
func openFile(path string) (e *Example, err error) {
	switch {
	case IsImage(path):
		e = &Example{}
		e.Image, err = OpenImage(path)
	case audio.Named(path) && !beside(path):
		e = &Example{User: Speaker(path)}
		e.Recording, err = OpenRecording(path)
	}
	return e, err
}

// Images calls each with every image of a table of pixels and its line; a label is
// not needed in what it holds, but its column is.
func (c Columns) Images(r io.Reader, name string, each func(line int, m *Image) error) error {
	var all []Example
	err := c.scan(r, name, true, func(line int, l labelled) error {
		if l.Image == nil {
			return errors.New("it is no table of pixels")
		}
		all = append(all, Example{Image: l.Image, Line: line})
		return nil
	})
	if err != nil {
		return err
	}
	scalePixels(all)
	for _, e := range all {
		if err := each(e.Line, e.Image); err != nil {
			return &LineError{cmp.Or(name, "input"), e.Line, err}
		}
	}
	return nil
}
