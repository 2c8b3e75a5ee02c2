package doctor

import (
	"context"
	"database/sql"
	"strings"
)

// rows runs a query and gives its rows as texts; null is empty.
func (p *Patient) rows(ctx context.Context, query string) ([][]string, error) {
	found, err := p.DB.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = found.Close() }()
	names, err := found.Columns()
	if err != nil {
		return nil, err
	}
	var all [][]string
	for found.Next() {
		cells := make([]sql.NullString, len(names))
		into := make([]any, len(names))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := found.Scan(into...); err != nil {
			return nil, err
		}
		row := make([]string, len(names))
		for i, c := range cells {
			row[i] = c.String
		}
		all = append(all, row)
	}
	return all, found.Err()
}

// row gives the only row of a query.
func (p *Patient) row(ctx context.Context, query string) ([]string, error) {
	all, err := p.rows(ctx, query)
	if err == nil && len(all) != 1 {
		err = sql.ErrNoRows
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// literal quotes a text for SQL. What is quoted here was validated as a name or
// comes from the catalog.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
