package graph

import (
	"context"

	"seatline/graph/model"
	"seatline/internal/registrar"
)

// receipts is a page of a person's receipts.
func (r *Resolver) receipts(ctx context.Context, user string, p registrar.Page) (*model.ReceiptConnection, error) {
	rows, more, err := r.registrar.Receipts(ctx, user, p)
	if err != nil {
		return nil, err
	}
	return model.Receipts(r.source.Receipts(rows), more, p.After != "", func(ctx context.Context) (int, error) {
		return r.registrar.CountReceipts(ctx, user)
	}), nil
}

// roster is a page of a lecture's roster.
func (r *Resolver) roster(ctx context.Context, id int, f registrar.RosterFilter, p registrar.Page) (*model.ReceiptConnection, error) {
	rows, more, err := r.registrar.Roster(ctx, id, f, p)
	if err != nil {
		return nil, err
	}
	return model.Roster(r.source.Receipts(rows), more, p.After != "", func(ctx context.Context) (int, error) {
		return r.registrar.CountRoster(ctx, id, f)
	}), nil
}
