package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// An event is what this provider sends.
type event struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Cents int    `json:"cents"`
}

func decode(payload []byte) (e event, err error) {
	err = json.Unmarshal(payload, &e)
	return e, err
}

// A provider plays the other side.
type provider struct {
	url    string
	secret []byte
}

// send delivers an event that was signed at a time, and prints the answer.
func (p provider) send(ctx context.Context, e event, signed time.Time) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	stamp := strconv.FormatInt(signed.Unix(), 10)
	req.Header.Set("Stripe-Signature", "t="+stamp+",v1="+hex.EncodeToString(sign(p.secret, stamp, body)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	fmt.Printf("  %s: %d %s\n", e.ID, resp.StatusCode, strings.TrimSpace(string(answer)))
	return nil
}
