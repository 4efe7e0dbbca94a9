package relay

import (
	"encoding/binary"
	"errors"
)

// errWrong is a message that no link has.
var errWrong = errors.New("relay: a message that no link has")

// Kinds of frames. A message holds some, whole: each says its stream, and how many bytes follow.
const (
	frameOpen   byte = 1 + iota // of a gateway: a stream begins; where its device is
	frameData                   // at least a byte
	frameCredit                 // 4 bytes: so many more of data may come
	frameEnd                    // the other end sends no more
	frameReset                  // the stream is over, both ways
)

const (
	frameHead   = 9
	creditBytes = 4
)

// frame is one of a message; its payload is the message's.
type frame struct {
	kind    byte
	stream  uint32
	payload []byte
}

func appendHead(m []byte, kind byte, stream uint32, n int) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(append(m, kind), stream), uint32(n))
}

// nextFrame cuts the first one off.
func nextFrame(m []byte) (f frame, rest []byte, err error) {
	if len(m) < frameHead {
		return f, nil, errWrong
	}
	n := binary.BigEndian.Uint32(m[5:])
	f = frame{kind: m[0], stream: binary.BigEndian.Uint32(m[1:])}
	if m = m[frameHead:]; uint64(n) > uint64(len(m)) {
		return f, nil, errWrong
	}
	f.payload, rest = m[:n], m[n:]
	right := false
	switch f.kind {
	case frameOpen:
		right = n <= mostAddress
	case frameData:
		right = n > 0
	case frameCredit:
		right = n == creditBytes
	case frameEnd, frameReset:
		right = n == 0
	}
	if !right {
		return f, nil, errWrong
	}
	return f, rest, nil
}
