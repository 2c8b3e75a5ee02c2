package postroom_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postroom/postroom"
)

// storable is what every store can keep as a name: text that PostgreSQL takes,
// of a length that fits each index.
func storable(s string) bool {
	return s != "" && utf8.ValidString(s) && !strings.Contains(s, "\x00") && utf8.RuneCountInString(s) <= 255
}

func FuzzKeyIsRefusedOrStorable(f *testing.F) {
	f.Add("orders", "stripe", "evt_1")
	f.Add("", "s", "i")
	f.Add("Orders", "s", "i")
	f.Add("a.b_c-1", "A\u0301 ", "'; DROP TABLE postroom_work; --")
	f.Add("a", "\x00", "i")
	f.Add("a", "s", "\xff")
	f.Add("a", strings.Repeat("é", 255), strings.Repeat("🎺", 256))
	f.Add("a", strings.Repeat("🎺", 255), strings.Repeat("🎺", 255))
	f.Add(strings.Repeat("a", 65), "s", "i")
	f.Fuzz(func(t *testing.T, consumer, source, id string) {
		key := postroom.Key{Consumer: consumer, Source: source, ID: id}
		err := key.Validate()
		if err == nil {
			if len(consumer) > 64 || strings.Trim(consumer, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" || consumer == "" {
				t.Errorf("consumer %q passed", consumer)
			}
			if !storable(source) || !storable(id) || len(source)+len(id) > 1500 {
				t.Errorf("source %q and id %q passed", source, id)
			}
			return
		}
		var argument *postroom.ArgumentError
		if !errors.As(err, &argument) || argument.Reason == "" {
			t.Fatalf("error %v names no argument", err)
		}
		switch argument.Argument {
		case "consumer":
			if postroom.ValidateConsumer(consumer) == nil {
				t.Errorf("%v, but the consumer is fine", err)
			}
		case "source":
			if storable(source) {
				t.Errorf("%v, but the source is fine", err)
			}
		case "id":
			if storable(id) && len(source)+len(id) <= 1500 {
				t.Errorf("%v, but the id is fine", err)
			}
		default:
			t.Errorf("%v is about no part of a key", err)
		}
	})
}

func FuzzMessageIsRefusedOrStorable(f *testing.F) {
	f.Add("topic", []byte("payload"), "group", "name", "value", []byte("hash"), "sha256", "correlation")
	f.Add("", []byte(nil), "", "", "", []byte(nil), "", "")
	f.Add("\x00", []byte{0, 255}, "\xff", "\x00", "\xff", make([]byte, 513), strings.Repeat("x", 33), "\x00")
	f.Fuzz(func(t *testing.T, topic string, payload []byte, group, header, value string, hash []byte, alg, correlation string) {
		m := postroom.Message{
			Consumer: "c", Source: "s", ID: "i", Topic: topic, Payload: payload, Group: group,
			Headers: map[string]string{header: value}, Hash: hash, HashAlg: alg, CorrelationID: correlation,
		}
		err := m.Validate(true, 1000)
		if err != nil {
			var argument *postroom.ArgumentError
			if !errors.As(err, &argument) || argument.Argument == "" {
				t.Errorf("error %v names no argument", err)
			}
			return
		}
		if !storable(topic) || payload == nil || len(payload) > 1000 {
			t.Errorf("topic %q with a payload of %d bytes passed", topic, len(payload))
		}
		for _, optional := range []string{group, correlation, header, value, alg} {
			if !utf8.ValidString(optional) || strings.Contains(optional, "\x00") {
				t.Errorf("%q passed", optional)
			}
		}
	})
}
