package pipes

import "net/http"

// Cut is a response that breaks after Left bytes, for tests of downloads.
type Cut struct {
	http.ResponseWriter
	Left int
}

// Write writes what is left; then it ends the connection, as a server does that dies.
func (c *Cut) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p[:min(len(p), c.Left)])
	if c.Left -= n; c.Left == 0 {
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}
