package report

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// uncleanTables lists the tables with runs of builds that no commit names, as sha256sum prints them. They were there
// before such tables were refused; none is added, and anyone who changes one makes it anew.
const uncleanTables = "unclean.txt"

// unclean reports whether a build's version names no commit: none, or one with changes.
func unclean(version string) bool {
	return version == "" || version == "devel" || strings.Contains(version, "dirty")
}

// cleanness is what is said of a table's builds: nothing where each is of a commit; how many runs are not where the table
// is one of those that may stay; else an error.
func cleanness(folder fs.FS, name string, text []byte, points []*point) (says string, err error) {
	runs, bad := 0, 0
	var builds []string
	for _, p := range points {
		for _, e := range p.rows {
			runs++
			if v := e["version"]; unclean(v) {
				bad++
				builds = append(builds, v)
			}
		}
	}
	if bad == 0 {
		return "", nil
	}
	slices.Sort(builds)
	listed, err := fs.ReadFile(folder, uncleanTables)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	sum := sha256.Sum256(text)
	if !slices.Contains(strings.Split(string(listed), "\n"), hex.EncodeToString(sum[:])+"  "+name) {
		return "", fmt.Errorf("%d of %d runs are of builds that no commit names (%s): build starling from a clean checkout and run the sweep anew",
			bad, runs, strings.Join(slices.Compact(builds), ", "))
	}
	return fmt.Sprintf("**Not of a commit:** %d of %d runs are of builds with changes that no commit holds, or without a name; they cannot be made again exactly.", bad, runs), nil
}
