// Package audio reads recordings, WAV and FLAC, to samples of one channel at the rate that a model wants. It keeps no state and knows no model, and bounds what
// a stranger's file can make it allocate: see MaxSamples, MaxChannels, LeastRate and MostRate.
//
//	s, err := audio.Decode(file)
//	...
//	s, err = s.Resampled(16000)
//
// WAV follows Microsoft's Multimedia Programming Interface 1.0 and its extensible format;
// FLAC is RFC 9639, read by github.com/mewkiz/flac.
package audio
