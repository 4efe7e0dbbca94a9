//go:build js && !full

package main

// spoken: no build without a decoder reads conversations.
func spoken(messages string) string { return messages }
