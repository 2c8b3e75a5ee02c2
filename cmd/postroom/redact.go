package main

import "regexp"

var (
	// userinfo reaches to the last @ of the word: a password that should have
	// been percent-encoded may hold an @ or a slash.
	userinfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s:/@]*:)\S*@`)
	setting  = regexp.MustCompile(`(?i)\b((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)`)
)

// redact takes passwords out of a text that may quote a database URL or a
// connection string. Every message of this program passes through it.
func redact(text string) string {
	text = userinfo.ReplaceAllString(text, "${1}xxxxx@")
	return setting.ReplaceAllString(text, "${1}xxxxx")
}
