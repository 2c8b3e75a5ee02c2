package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// prove counts, in the tables alone, what must be one of each.
func prove(ctx context.Context, db *sql.DB) error {
	var wrong []error
	for _, claim := range []struct {
		says, query string
		want        int
	}{
		{"orders placed", `SELECT count(*) FROM orders`, orders},
		{"orders charged once", `SELECT count(*) FROM orders o WHERE 1 = (SELECT count(*) FROM charges c WHERE c.order_id = o.id AND c.cents = o.cents)`, orders},
		{"orders shipped once", `SELECT count(*) FROM orders o WHERE 1 = (SELECT count(*) FROM parcels p WHERE p.order_id = o.id)`, orders},
		{"charges and parcels without an order", `SELECT (SELECT count(*) FROM charges WHERE order_id NOT IN (SELECT id FROM orders))
			+ (SELECT count(*) FROM parcels WHERE order_id NOT IN (SELECT id FROM orders))`, 0},
		{"messages left behind", `SELECT (SELECT count(*) FROM orders_outbox_work) + (SELECT count(*) FROM payments_work)
			+ (SELECT count(*) FROM payments_outbox_work) + (SELECT count(*) FROM shipping_work)`, 0},
	} {
		n, err := count(ctx, db, claim.query)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d\n", claim.says, n)
		if n != claim.want {
			wrong = append(wrong, fmt.Errorf("%s: %d, want %d", claim.says, n, claim.want))
		}
	}
	return errors.Join(wrong...)
}
