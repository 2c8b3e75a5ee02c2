package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/postroom/postroom"
)

// JSON makes a handler of a function that takes the decoded payload. A payload
// that does not decode is Dead at once. MessageFrom gives the rest of the
// message.
func JSON[T any](f func(ctx context.Context, v T) error) postroom.Handler {
	return postroom.HandlerFunc(func(ctx context.Context, m *postroom.Message) error {
		v, err := decode[T](m.Payload)
		if err != nil {
			return err
		}
		return f(ctx, v)
	})
}

// JSONTx is JSON for a transactional handler.
func JSONTx[T any](f func(ctx context.Context, tx postroom.Tx, v T) error) postroom.TxHandler {
	return postroom.TxHandlerFunc(func(ctx context.Context, tx postroom.Tx, m *postroom.Message) error {
		v, err := decode[T](m.Payload)
		if err != nil {
			return err
		}
		return f(ctx, tx, v)
	})
}

// decode says where a payload is wrong, and never what it says there: errors end
// up in tables and logs.
func decode[T any](payload []byte) (v T, err error) {
	err = json.Unmarshal(payload, &v)
	if err == nil {
		return v, nil
	}
	where := ""
	var (
		syntax *json.SyntaxError
		typed  *json.UnmarshalTypeError
	)
	switch {
	case errors.As(err, &syntax):
		where = fmt.Sprintf(": not JSON at byte %d of %d", syntax.Offset, len(payload))
	case errors.As(err, &typed):
		where = fmt.Sprintf(": field %q, before byte %d, can't be a %s", typed.Field, typed.Offset, typed.Type)
	}
	return v, postroom.Permanent(fmt.Errorf("decode payload as %T%s", v, where))
}
