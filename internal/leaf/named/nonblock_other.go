//go:build !unix

package named

const nonblock = 0 // what a name stands for was looked at before
