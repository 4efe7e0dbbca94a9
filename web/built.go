package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// record is what the build of the pages leaves beside them; it is not served.
const record = "built.json"

// buildOf reads what the pages' client said it speaks when it was built; empty:
// there are no pages.
func buildOf(dist fs.FS) (protocol string, err error) {
	pages, err := fs.Glob(dist, "index.html*")
	if err != nil || len(pages) == 0 {
		return "", err
	}
	b, err := fs.ReadFile(dist, record)
	if errors.Is(err, fs.ErrNotExist) {
		return "unknown", nil // by a build that left no word
	}
	if err != nil {
		return "", err
	}
	var r struct {
		Protocol string `json:"protocol"`
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return "", fmt.Errorf("%s: %w", record, err)
	}
	return r.Protocol, nil
}

// Fault says why a browser cannot take part by the pages that are built into this
// program, which speaks protocol: they are not built, or were built before it
// changed. It is empty if all is well.
func Fault(protocol string) string { return fault(embedded(), protocol) }

func fault(dist fs.FS, protocol string) string {
	const mend = "run make web, then make build"
	switch built, err := buildOf(dist); {
	case err != nil:
		return fmt.Sprintf("browsers cannot join: the pages' %v: %s", err, mend)
	case built == "":
		return "browsers cannot join: this program was built without its pages: " + mend
	case built != protocol:
		return fmt.Sprintf("browsers cannot join: the pages' client speaks protocol %s, this program %s: %s", built, protocol, mend)
	}
	return ""
}

func embedded() fs.FS {
	dist, err := fs.Sub(built, "dist")
	if err != nil {
		panic(err) // the directory is embedded
	}
	return dist
}
