package memstore_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/memstore"
	"github.com/postroom/postroom/storetest"
)

func TestSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		var ahead atomic.Int64
		store := memstore.New(memstore.Options{
			Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		})
		t.Cleanup(func() { _ = store.Close() })
		return storetest.Harness{Store: store, Advance: func(d time.Duration) { ahead.Add(int64(d)) }}
	})
}
