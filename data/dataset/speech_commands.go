package dataset

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/named"
)

// Lists of Speech Commands (Warden 2018), in the folder that holds a folder for each word: a
// line names a recording as word/file. What neither names is to train on.
const (
	validationList = "validation_list.txt"
	testingList    = "testing_list.txt"
)

// maxListed bounds a list's lines; Speech Commands V2 has 105,829 recordings.
const maxListed = 1 << 20

// isList reports whether a file's name is that of such a list.
func isList(name string) bool {
	base := filepath.Base(name)
	return base == validationList || base == testingList
}

// listing is what a list names, each with its line.
func listing(name string) (map[string]int, error) {
	f, err := named.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string]int{}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, MaxLine)
	line := 0
	for sc.Scan() {
		line++
		entry := strings.TrimSpace(sc.Text())
		if entry == "" {
			continue
		}
		word, file := path.Split(entry)
		if word = strings.TrimSuffix(word, "/"); word == "" || file == "" || strings.ContainsAny(word, `/\`) || !filepath.IsLocal(filepath.FromSlash(entry)) {
			return nil, &LineError{name, line, fmt.Errorf("%.80q names no recording: want word/file, as Speech Commands' lists have them", entry)}
		}
		if _, twice := out[entry]; twice {
			return nil, &LineError{name, line, fmt.Errorf("%.80q is in the list twice", entry)}
		}
		if out[entry] = line; len(out) > maxListed {
			return nil, fmt.Errorf("%s: more than %d recordings", name, maxListed)
		}
	}
	if err := sc.Err(); err != nil {
		return nil, &LineError{name, line + 1, err}
	}
	return out, nil
}

// heldBack are the recordings of a folder that its lists keep for validation and test, none
// where it has no lists.
func heldBack(folder string) (map[string]bool, error) {
	out := map[string]bool{}
	for _, name := range []string{validationList, testingList} {
		list, err := listing(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for entry, line := range list {
			if out[entry] {
				return nil, &LineError{filepath.Join(folder, name), line, fmt.Errorf("%.80q is to validate and to test", entry)}
			}
			out[entry] = true
		}
	}
	return out, nil
}

// loadList opens the recordings that a list names.
func loadList(name string) (*Set, error) {
	list, err := listing(name)
	if err != nil {
		return nil, err
	}
	folder := filepath.Dir(name)
	set, err := readFolder(name, folder, func(entry string) bool { return list[entry] > 0 })
	if err != nil {
		return nil, err
	}
	if len(set.Examples) < len(list) { // the first that is not there
		missing, line := "", 0
		for entry, at := range list {
			if _, err := os.Stat(filepath.Join(folder, filepath.FromSlash(entry))); err != nil && (line == 0 || at < line) {
				missing, line = entry, at
			}
		}
		return nil, &LineError{name, line, fmt.Errorf("%.80q is no recording in the list's folder: want .wav or .flac", missing)}
	}
	return set, nil
}
