//go:build !js

package edge

import "net/http"

func httpClient(h *house) *HTTPClient { return &http.Client{Transport: h} }
