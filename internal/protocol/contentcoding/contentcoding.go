// Package contentcoding answers requests in the content codings that they take (RFC 9110,
// section 8.4): what browsers fetch is packed, once for all of them.
package contentcoding

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Accepted reports whether an Accept-Encoding header names a coding, not with a weight of zero.
func Accepted(header, coding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			q, ok := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
			v, err := strconv.ParseFloat(q, 64)
			return !ok || err != nil || v > 0
		}
	}
	return false
}

// Gzip packs all that r gives, as small as gzip makes it.
func Gzip(r io.Reader) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = io.Copy(z, r)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("contentcoding: %w", err)
	}
	return b.Bytes(), nil
}
