package box

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

var errWhy = errors.New("why")

// What code below a handler may do with its context, before and after its end.
func TestLazyContext_is_like_one_of_package_context(t *testing.T) {
	type key struct{}
	for name, made := range map[string]bool{"asked for before it ends": true, "asked for afterwards": false} {
		t.Run(name, func(t *testing.T) {
			c := &lazyContext{parent: context.WithValue(t.Context(), key{}, "v")}
			if made {
				c.Done()
			}
			if c.Err() != nil || (made && context.Cause(c) != nil) {
				t.Fatalf("it has ended: %v", c.Err())
			}
			c.end(errWhy)
			c.end(errors.New("another"))
			if !errors.Is(c.Err(), context.Canceled) || !errors.Is(context.Cause(c), errWhy) {
				t.Errorf("it ended with %v, because of %v", c.Err(), context.Cause(c))
			}
			select {
			case <-c.Done():
			default:
				t.Error("it is not done")
			}
			if c.Value(key{}) != "v" {
				t.Errorf("the value is %v", c.Value(key{}))
			}
			child, cancel := context.WithCancel(c)
			defer cancel()
			if !errors.Is(context.Cause(child), errWhy) {
				t.Errorf("a child ended because of %v", context.Cause(child))
			}
		})
	}
}

func TestLazyContext_ends_what_came_of_it(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &lazyContext{parent: t.Context()}
		child, cancel := context.WithTimeout(WithMessage(c, nil), time.Hour)
		defer cancel()
		called := false
		defer context.AfterFunc(c, func() { called = true })()
		if synctest.Wait(); child.Err() != nil || called {
			t.Fatal("it has ended")
		}
		c.end(errWhy)
		if synctest.Wait(); !errors.Is(context.Cause(child), errWhy) || !called {
			t.Errorf("the child ended because of %v; called: %v", context.Cause(child), called)
		}
	})
}

// Whatever ends first counts, from then on, whenever it is asked for.
func TestLazyContext_ends_with_its_parent(t *testing.T) {
	for name, c := range map[string]struct {
		parentFirst bool
		err, cause  error
	}{
		"parent first": {true, context.DeadlineExceeded, context.DeadlineExceeded},
		"parent later": {false, context.Canceled, errWhy},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				lazy := &lazyContext{parent: parent}
				if d, ok := lazy.Deadline(); !ok || !d.Equal(time.Now().Add(time.Second)) {
					t.Errorf("the deadline is %v", d)
				}
				if !c.parentFirst {
					lazy.end(errWhy)
				}
				time.Sleep(2 * time.Second)
				lazy.end(errWhy)
				first := lazy.Err()
				<-lazy.Done()
				if !errors.Is(first, c.err) || !errors.Is(lazy.Err(), c.err) || !errors.Is(context.Cause(lazy), c.cause) {
					t.Errorf("it ended with %v, then %v, because of %v; want %v, because of %v", first, lazy.Err(), context.Cause(lazy), c.err, c.cause)
				}
			})
		})
	}
}

// To print one, as handlers of logs do, reads nothing that changes.
func TestLazyContext_has_a_name(t *testing.T) {
	c := &lazyContext{parent: context.Background()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.end(errWhy)
	}()
	if name := fmt.Sprint(WithMessage(c, nil)); name != "context.Background.WithCancel.WithMessage" {
		t.Error(name)
	}
	<-done
}
