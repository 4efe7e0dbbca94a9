// Package voices makes recordings of generated voices: espeak-ng speaks, and each speaker has
// a voice, a throat, a tempo, a room and a noise of its own. They are nobody's voice and
// nobody's words, for tests, presets and bases: what is learnt from them says nothing of how
// well people are understood.
//
// By rule espeak-ng computes a voice; flite's few are made of what people read aloud for them,
// and half of those that train may speak by it, for bases that people's recordings come to.
//
// A seed's speaker i is the same voice whatever it says. The same settings and the same
// version of espeak-ng give the same files on one kind of processor.
package voices
