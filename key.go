package postroom

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// A Key names a message. Keys are compared byte by byte in every store.
type Key struct {
	// Consumer is 1 to 64 bytes of a-z, 0-9, dot, underscore and hyphen.
	Consumer string
	// Source and ID are 1 to 255 characters of valid UTF-8 without NUL, and
	// together at most 1,500 bytes.
	Source, ID string
}

// String gives the key for people to read; it is not meant to be parsed.
func (k Key) String() string {
	return fmt.Sprintf("%s/%s/%s", k.Consumer, k.Source, k.ID)
}

// Limits of names. They are checked before any SQL, so that each store gives
// the same verdict.
const (
	maxConsumer = 64
	maxName     = 255
	maxKeyBytes = 1500
	// MaxPayload is the default limit of a payload in bytes.
	MaxPayload = 1 << 20
	// MaxPayloadLimit is the highest limit that can be asked for.
	MaxPayloadLimit = 64 << 20
)

// Validate reports the first part of the key that no store may accept.
func (k Key) Validate() error {
	if err := ValidateConsumer(k.Consumer); err != nil {
		return err
	}
	if err := checkName("source", k.Source, true); err != nil {
		return err
	}
	if err := checkName("id", k.ID, true); err != nil {
		return err
	}
	if n := len(k.Source) + len(k.ID); n > maxKeyBytes {
		return &ArgumentError{"id", fmt.Sprintf("source and id are %d bytes together, at most %d are allowed", n, maxKeyBytes)}
	}
	return nil
}

// ValidateConsumer reports whether name can name an inbox.
func ValidateConsumer(name string) error {
	switch {
	case name == "":
		return &ArgumentError{"consumer", "is empty"}
	case len(name) > maxConsumer:
		return &ArgumentError{"consumer", fmt.Sprintf("is %d bytes long, at most %d are allowed", len(name), maxConsumer)}
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return &ArgumentError{"consumer", fmt.Sprintf("has %q at byte %d, allowed are a-z 0-9 . _ -", c, i)}
		}
	}
	return nil
}

// checkName holds for source, id, topic, group and the correlating ids.
func checkName(field, s string, required bool) error {
	if s == "" {
		if required {
			return &ArgumentError{field, "is empty"}
		}
		return nil
	}
	if !utf8.ValidString(s) {
		return &ArgumentError{field, "is not valid UTF-8"}
	}
	if strings.IndexByte(s, 0) >= 0 {
		return &ArgumentError{field, "contains a NUL character"}
	}
	if n := utf8.RuneCountInString(s); n > maxName {
		return &ArgumentError{field, fmt.Sprintf("is %d characters long, at most %d are allowed", n, maxName)}
	}
	return nil
}

// Validate reports the first thing about a message that no store may accept:
// its key, topic, payload, group, hash, headers, times. A message that is only
// looked up or marked needs no topic and no payload; one that is to be handled
// later does, which queued says. maxPayload 0 means MaxPayload.
func (m *Message) Validate(queued bool, maxPayload int) error {
	if err := m.Key().Validate(); err != nil {
		return err
	}
	if err := checkName("topic", m.Topic, queued); err != nil {
		return err
	}
	if queued && m.Payload == nil {
		return &ArgumentError{"payload", "is nil; an empty payload is []byte{}"}
	}
	if maxPayload == 0 {
		maxPayload = MaxPayload
	}
	if n := len(m.Payload); n > maxPayload {
		return &ArgumentError{"payload", fmt.Sprintf("is %d bytes, at most %d are allowed; raise MaxPayload or send a reference", n, maxPayload)}
	}
	for _, f := range []struct{ name, value string }{
		{"group", m.Group},
		{"correlation id", m.CorrelationID},
		{"causation id", m.CausationID},
	} {
		if err := checkName(f.name, f.value, false); err != nil {
			return err
		}
	}
	return m.validateExtras()
}

const (
	maxHash    = 512
	maxHashAlg = 32
	maxHeaders = 64 << 10
)

func (m *Message) validateExtras() error {
	if n := len(m.Hash); n > maxHash {
		return &ArgumentError{"hash", fmt.Sprintf("is %d bytes, at most %d are allowed", n, maxHash)}
	}
	if n := len(m.HashAlg); n > maxHashAlg || !utf8.ValidString(m.HashAlg) || strings.IndexByte(m.HashAlg, 0) >= 0 {
		return &ArgumentError{"hash algorithm", fmt.Sprintf("is not a name of at most %d bytes", maxHashAlg)}
	}
	size := 0
	for k, v := range m.Headers {
		if k == "" || !utf8.ValidString(k) || !utf8.ValidString(v) || strings.IndexByte(k, 0) >= 0 || strings.IndexByte(v, 0) >= 0 {
			return &ArgumentError{"headers", "need names that are not empty, and valid UTF-8 without NUL"}
		}
		size += len(k) + len(v)
	}
	if size > maxHeaders {
		return &ArgumentError{"headers", fmt.Sprintf("are %d bytes together, at most %d are allowed", size, maxHeaders)}
	}
	for _, t := range []struct {
		name string
		year int
	}{{"due time", year(m.DueAt)}, {"expiry", year(m.ExpiresAt)}, {"time of occurrence", year(m.OccurredAt)}} {
		if t.year < 1970 || t.year > 9999 {
			return &ArgumentError{t.name, fmt.Sprintf("is in the year %d, allowed are 1970 to 9999", t.year)}
		}
	}
	return nil
}

// year lets the zero time pass as one that was not set.
func year(t time.Time) int {
	if t.IsZero() {
		return 1970
	}
	return t.UTC().Year()
}
