// Package audio reads recordings: WAV, FLAC, and Vorbis and Opus in Ogg to samples of one
// channel at the rate that a model wants. It keeps no state and knows no model, and bounds what
// a stranger's file can make it allocate: see MaxSamples, MaxChannels, LeastRate and MostRate.
//
// WAV follows Microsoft's Multimedia Programming Interface 1.0 and its extensible format;
// FLAC is RFC 9639, read by github.com/mewkiz/flac. Ogg is RFC 3533; Vorbis I in it is read by
// github.com/jfreymuth/vorbis behind a check of its headers, Opus (RFC 7845, RFC 6716) by
// github.com/pion/opus.
package audio
