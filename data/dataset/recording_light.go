//go:build js && !full

package dataset

import "errors"

func within(string, string) (string, error) {
	return "", errors.New("names a file, and this build opens none")
}

// OpenRecording: a page opens no files by their names, and most jobs have texts.
func OpenRecording(string) (*Recording, error) {
	return nil, errors.New("this build reads no recordings")
}
