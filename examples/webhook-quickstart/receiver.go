package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
)

// source namespaces the ids of this provider: another one may use the same ids.
const source = "stripe"

// maxBody is what a stranger may make us read before the signature is checked.
const maxBody = 1 << 20

// A receiver takes webhooks in. A 2xx tells the provider never to send the event
// again, so it is given only when the event is in the database.
type receiver struct {
	in     *inbox.Inbox
	secret []byte
	now    func() time.Time
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		http.Error(w, "body can't be read", http.StatusBadRequest)
		return
	}
	if err := r.verify(req.Header.Get("Stripe-Signature"), body); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	var event struct{ ID, Type string }
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "body is not an event", http.StatusBadRequest)
		return
	}
	outcome, err := r.take(req.Context(), event.ID, event.Type, body)
	var wrong *postroom.ArgumentError
	switch {
	case errors.As(err, &wrong):
		http.Error(w, wrong.Error(), http.StatusBadRequest)
	case err != nil:
		// Whatever it was, the provider tries again, and a repetition does no harm.
		http.Error(w, "not stored, try again", http.StatusServiceUnavailable)
	default:
		_, _ = io.WriteString(w, outcome)
	}
}

// take checks and enqueues. The check only saves work: Receive recognises a
// duplicate by itself, also when two of them come at once.
func (r *receiver) take(ctx context.Context, id, kind string, body []byte) (outcome string, err error) {
	hash := sha256.Sum256(body)
	done, err := r.in.AlreadyProcessed(ctx, source, id, hash[:])
	if err != nil || done {
		return "already processed", err
	}
	res, err := r.in.Receive(ctx, postroom.Message{
		Source: source, ID: id, Topic: source + "." + kind, Payload: body, Hash: hash[:],
	})
	return res.Outcome.String(), err
}

// tolerance is how old a signature may be: who overheard one can't use it later.
const tolerance = 5 * time.Minute

// verify checks a header of the form t=<unix seconds>,v1=<hex>, where v1 is the
// HMAC-SHA256 of "<seconds>.<body>". There may be several v1 while the secret is
// being changed.
func (r *receiver) verify(header string, body []byte) error {
	var (
		stamp      string
		signatures []string
	)
	for part := range strings.SplitSeq(header, ",") {
		switch name, value, _ := strings.Cut(part, "="); name {
		case "t":
			stamp = value
		case "v1":
			signatures = append(signatures, value)
		}
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return errors.New("signature is missing")
	}
	if age := r.now().Sub(time.Unix(seconds, 0)); age.Abs() > tolerance {
		return errors.New("signature is too old")
	}
	want := sign(r.secret, stamp, body)
	for _, s := range signatures {
		got, err := hex.DecodeString(s)
		if err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return errors.New("signature is wrong")
}

func sign(secret []byte, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}
