//go:build js && !full

package dataset

import "errors"

// decodeCompressed: a page takes its pixels from a table, and most jobs have texts;
// the decoders would be a thirtieth of what a browser loads.
func decodeCompressed(data []byte) (*Image, error) { return nil, checkCompressed(data) }

func checkCompressed([]byte) error {
	return errors.New("this build reads PGM alone, neither PNG nor JPEG")
}
