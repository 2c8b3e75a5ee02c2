package stores_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/inbox"
	"github.com/postroom/postroom/pgxstore"
	"github.com/postroom/postroom/tests/services"
	"github.com/postroom/postroom/tests/stores"
)

// A pool may be set to run statements in another way than pgx does by itself, in
// which it has to know the type of each argument.
func TestPgxstore_works_in_each_mode_that_a_pool_can_be_set_to(t *testing.T) {
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			store := stores.Pgx(t, services.Postgres(t)+"&default_query_exec_mode="+mode, pgxstore.Options{}).Store
			in, err := inbox.New(store, "modes", inbox.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = in.Close() })
			sent := map[string]postroom.Message{}
			var batch []postroom.Message
			for i := range 20 {
				m := postroom.Message{Source: "s", ID: fmt.Sprint(i), Topic: "t", Payload: []byte{}}
				if i%2 == 0 {
					m.Payload, m.Headers = []byte{0, byte(i), '\\', '"'}, map[string]string{"k": `{"\`}
					m.OccurredAt = time.Date(2026, 1, 2, 3, 4, 5, 678_000, time.UTC)
				}
				if i%3 == 0 {
					m.Group = fmt.Sprint(i % 2)
				}
				sent[m.ID], batch = m, append(batch, m)
			}
			for range 2 { // the second time, all are known
				if _, err := in.ReceiveAll(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
			}
			mux := inbox.NewMux()
			if err := mux.HandleFunc("t", func(_ context.Context, m *postroom.Message) error {
				want := sent[m.ID]
				delete(sent, m.ID)
				if string(want.Payload) != string(m.Payload) || !reflect.DeepEqual(want.Headers, m.Headers) || !want.OccurredAt.Equal(m.OccurredAt) || want.Group != m.Group {
					t.Errorf("got %+v, sent %+v", m, want)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := inbox.NewWorker(in, mux, inbox.WorkerOptions{Concurrency: 1}).RunUntilIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(sent) != 0 {
				t.Errorf("%d messages were not handled", len(sent))
			}
		})
	}
}
