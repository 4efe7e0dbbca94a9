//go:build js && !full

package dataset

import "errors"

// OpenRecording: a page opens no files by their names, and most jobs have texts.
func OpenRecording(string) (*Recording, error) {
	return nil, errors.New("this build reads no recordings")
}
