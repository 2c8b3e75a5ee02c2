package postroom

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // name-based UUIDs are defined with SHA-1
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"
)

var lastID struct {
	sync.Mutex
	stamp uint64
}

// NewID gives a new UUIDv7: its order is the order of creation, also within one
// millisecond of one process, which keeps an index on it compact.
func NewID() string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // crypto/rand never fails
	now := time.Now()
	// 48 bits of milliseconds, then 12 bits of the millisecond's fraction.
	millis := uint64(now.UnixMilli())
	stamp := millis<<12 | uint64(now.Nanosecond()%1_000_000)*4096/1_000_000
	lastID.Lock()
	if stamp <= lastID.stamp {
		stamp = lastID.stamp + 1
	}
	lastID.stamp = stamp
	lastID.Unlock()
	binary.BigEndian.PutUint64(u[:8], stamp>>12<<16|0x7000|stamp&0xfff)
	u[8] = u[8]&0x3f | 0x80
	return formatUUID(u)
}

// namespace is the root under which NameID makes its UUIDs.
var namespace = [16]byte{0x6b, 0xa7, 0xb8, 0x12, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8}

// NameID gives the UUIDv5 of a name in the OID namespace: the same parts give
// the same ID, always and everywhere. Each part is length-prefixed when there
// is more than one, so that ("ab", "c") and ("a", "bc") differ.
func NameID(name string, more ...string) string {
	h := sha1.New() //nolint:gosec // see the import
	h.Write(namespace[:])
	if len(more) == 0 {
		h.Write([]byte(name))
	} else {
		for _, part := range append([]string{name}, more...) {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			h.Write([]byte(part))
		}
	}
	var u [16]byte
	copy(u[:], h.Sum(nil))
	u[6] = u[6]&0x0f | 0x50
	u[8] = u[8]&0x3f | 0x80
	return formatUUID(u)
}

func formatUUID(u [16]byte) string {
	var b [36]byte
	hex.Encode(b[0:8], u[0:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:36], u[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}
