package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/bus"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/sqlstore"
)

// The events by which the modules speak to each other. Those of one order go in
// order.
type order struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

func byOrder(o order) string { return o.Order }

var (
	orderPlaced  = outbox.Topic[order]{Name: "order.placed", Group: byOrder}
	orderCharged = outbox.Topic[order]{Name: "payment.charged", Group: byOrder}
)

// A shop is the three modules on one file, and the bus between them.
type shop struct {
	orders, payments, shipping *module
	bus                        *bus.Bus
}

func newShop(db *sql.DB) (*shop, error) {
	s := &shop{bus: bus.New()}
	var errs []error
	for name, m := range map[string]**module{"orders": &s.orders, "payments": &s.payments, "shipping": &s.shipping} {
		var err error
		*m, err = newModule(db, name)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, errors.Join(
		s.bus.Subscribe(s.payments.in, orderPlaced.Name),
		s.bus.Subscribe(s.shipping.in, orderCharged.Name),
		s.payments.mux.Handle(orderPlaced.Name, sqlstore.Handler(s.charge)),
		s.shipping.mux.Handle(orderCharged.Name, sqlstore.Handler(s.ship)),
	)
}

func (s *shop) modules() []*module { return []*module{s.orders, s.payments, s.shipping} }

func (s *shop) migrate(ctx context.Context, db *sql.DB) error {
	return errors.Join(
		s.orders.migrate(ctx, db, `CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, cents INTEGER NOT NULL)`),
		s.payments.migrate(ctx, db, `CREATE TABLE IF NOT EXISTS charges (order_id TEXT NOT NULL, cents INTEGER NOT NULL)`),
		s.shipping.migrate(ctx, db, `CREATE TABLE IF NOT EXISTS parcels (order_id TEXT NOT NULL)`),
	)
}

// place takes an order: it and the news of it are one commit. The same order
// placed twice, because the customer saw no answer, is found and left as it is.
func (s *shop) place(ctx context.Context, db *sql.DB, o order) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	res, err := tx.ExecContext(ctx, `INSERT INTO orders (id, cents) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`, o.Order, o.Cents)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err
	}
	if err := orderPlaced.Add(ctx, s.orders.out, sqlstore.Tx(tx), o); err != nil {
		return err
	}
	return tx.Commit()
}

// charge knows nothing of duplicates: its table even allows them. The charge, the
// news of it and the end of the incoming message are one commit.
func (s *shop) charge(ctx context.Context, tx *sql.Tx, m *postroom.Message) error {
	var o order
	if err := json.Unmarshal(m.Payload, &o); err != nil {
		return postroom.Permanent(err)
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO charges (order_id, cents) VALUES (?, ?)`, o.Order, o.Cents); err != nil {
		return err
	}
	return orderCharged.Add(ctx, s.payments.out, sqlstore.Tx(tx), o)
}

func (s *shop) ship(ctx context.Context, tx *sql.Tx, m *postroom.Message) error {
	var o order
	if err := json.Unmarshal(m.Payload, &o); err != nil {
		return postroom.Permanent(err)
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO parcels (order_id) VALUES (?)`, o.Order)
	return err
}
