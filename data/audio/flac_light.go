//go:build js && !full

package audio

import "fmt"

// decodeFLAC: a browser decodes by itself what its page is given, and most jobs have texts.
func decodeFLAC([]byte) (*Sound, error) {
	return nil, fmt.Errorf("%w: this build reads WAV alone, not FLAC", ErrFormat)
}
