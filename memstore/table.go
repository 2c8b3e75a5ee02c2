package memstore

import "iter"

// A table keeps rows that one transaction at a time may change. Until that one
// ends, the table remembers the committed version of each row it changed, for
// readers and for a rollback. Rows are values and never changed in place.
type table[K comparable, V any] struct {
	rows map[K]V
	// old is nil outside a transaction.
	old map[K]version[V]
}

// A version is a row, or the fact that there was none.
type version[V any] struct {
	row     V
	present bool
}

// A versioned table takes part in a transaction.
type versioned interface {
	begin()
	commit()
	rollback()
}

func newTable[K comparable, V any]() table[K, V] {
	return table[K, V]{rows: make(map[K]V)}
}

// get gives the writer's view of a row.
func (t *table[K, V]) get(k K) (V, bool) {
	v, ok := t.rows[k]
	return v, ok
}

func (t *table[K, V]) put(k K, v V) {
	t.remember(k)
	t.rows[k] = v
}

func (t *table[K, V]) delete(k K) {
	t.remember(k)
	delete(t.rows, k)
}

func (t *table[K, V]) remember(k K) {
	if t.old == nil {
		return
	}
	if _, ok := t.old[k]; !ok {
		v, present := t.rows[k]
		t.old[k] = version[V]{v, present}
	}
}

// committed gives a reader's view of a row.
func (t *table[K, V]) committed(k K) (V, bool) {
	if v, ok := t.old[k]; ok {
		return v.row, v.present
	}
	return t.get(k)
}

// all gives a reader's view of the table, in no order.
func (t *table[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for k, v := range t.old {
			if v.present && !yield(k, v.row) {
				return
			}
		}
		for k, v := range t.rows {
			if _, changed := t.old[k]; !changed && !yield(k, v) {
				return
			}
		}
	}
}

func (t *table[K, V]) begin()  { t.old = make(map[K]version[V]) }
func (t *table[K, V]) commit() { t.old = nil }

func (t *table[K, V]) rollback() {
	for k, v := range t.old {
		if v.present {
			t.rows[k] = v.row
		} else {
			delete(t.rows, k)
		}
	}
	t.old = nil
}
