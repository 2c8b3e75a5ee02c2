package sqlstore

import (
	"time"

	"github.com/postroom/postroom"
	"github.com/postroom/postroom/box"
)

// Columns of the tables, in the order in which every statement gives and takes
// them.

// workValues are the values of insert_work and update_work.
func workValues(w *box.Work) []any {
	return []any{
		w.Seq, w.Consumer, w.Topic, w.Group, int64(w.Stage), w.Position, w.ReadyPosition,
		int64(w.Attempt), int64(w.Lost), timeValue(w.Due), timeValue(w.Retry), timeValue(w.Next()), timeValue(w.Expires),
		w.Owner, w.Fence, timeValue(w.Until), int64(w.Guard), int64(w.Revision), w.LastError, timeValue(w.LastSeen),
	}
}

// workCells are where the columns of a work row are read to. When the row came
// from a left join and was not there, Seq is 0.
func workCells(w *box.Work) []any {
	return []any{
		(*intCell)(&w.Seq), (*textCell)(&w.Consumer), (*textCell)(&w.Topic), (*textCell)(&w.Group),
		(*stageCell)(&w.Stage), (*intCell)(&w.Position), (*intCell)(&w.ReadyPosition),
		(*countCell)(&w.Attempt), (*countCell)(&w.Lost),
		(*timeCell)(&w.Due), (*timeCell)(&w.Retry), (*timeCell)(&w.Expires),
		(*textCell)(&w.Owner), (*intCell)(&w.Fence), (*timeCell)(&w.Until), (*guardCell)(&w.Guard),
		(*countCell)(&w.Revision), (*textCell)(&w.LastError), (*timeCell)(&w.LastSeen),
	}
}

// claimCells are where the columns of a work row are read to that a claim gives.
func claimCells(w *box.Work) []any {
	return []any{
		(*intCell)(&w.Seq), (*intCell)(&w.ReadyPosition), (*countCell)(&w.Attempt), (*timeCell)(&w.Expires),
		(*intCell)(&w.Fence), (*timeCell)(&w.Until), (*countCell)(&w.Revision), (*textCell)(&w.LastError), (*timeCell)(&w.LastSeen),
	}
}

// doneValues are the values of insert_done.
func doneValues(d *box.Done) []any {
	return []any{
		d.Seq, d.Consumer, timeValue(d.At), int64(d.Runs), d.Handler, int64(d.Revision),
		d.Superseded, d.Discarded, d.Note, d.Fence, timeValue(d.LastSeen), d.Purged,
	}
}

// doneCells are where the columns of a done row are read to; Seq is 0 when the
// row was not there.
func doneCells(d *box.Done) []any {
	return []any{
		(*intCell)(&d.Seq), (*textCell)(&d.Consumer), (*timeCell)(&d.At), (*countCell)(&d.Runs), (*textCell)(&d.Handler),
		(*countCell)(&d.Revision), (*boolCell)(&d.Superseded), (*boolCell)(&d.Discarded), (*textCell)(&d.Note),
		(*intCell)(&d.Fence), (*timeCell)(&d.LastSeen), (*boolCell)(&d.Purged),
	}
}

// messageValues are the values of insert_message, after the seq.
func messageValues(m *postroom.Message, digest []byte) []any {
	return append([]any{m.Consumer, m.Source, m.ID, m.Group}, contentValues(m, digest)...)
}

// contentValues are what a replacement changes.
func contentValues(m *postroom.Message, digest []byte) []any {
	return []any{
		m.Topic, bytesValue(m.Payload), headersText(m.Headers), bytesValue(m.Hash), m.HashAlg, bytesValue(digest),
		timeValue(m.DueAt), timeValue(m.ExpiresAt), timeValue(m.OccurredAt), m.CorrelationID, m.CausationID,
	}
}

// messageCells are where the columns of a message row are read to.
func messageCells(m *postroom.Message) []any {
	return []any{
		(*textCell)(&m.Consumer), (*textCell)(&m.Source), (*textCell)(&m.ID), (*textCell)(&m.Group),
		(*textCell)(&m.Topic), (*bytesCell)(&m.Payload), (*headersCell)(&m.Headers), (*bytesCell)(&m.Hash), (*textCell)(&m.HashAlg),
		(*timeCell)(&m.DueAt), (*timeCell)(&m.ExpiresAt), (*timeCell)(&m.OccurredAt),
		(*textCell)(&m.CorrelationID), (*textCell)(&m.CausationID), (*timeCell)(&m.FirstSeen), (*countCell)(&m.Revision),
	}
}

// keyValues name a message.
func keyValues(k postroom.Key) []any { return []any{k.Consumer, k.Source, k.ID} }

// bytesValue keeps nil apart from empty.
func bytesValue(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// deliver completes a message from its work row.
func deliver(m *postroom.Message, w *box.Work) *postroom.Message {
	m.Attempt, m.LastSeen, m.LastError = w.Attempt, w.LastSeen, w.LastError
	m.Lease = w.Lease()
	m.Lease.Revision = m.Revision
	return m
}

// seqRows are rows of one number each.
func seqRows(seqs []int64) [][]any {
	rows := make([][]any, len(seqs))
	for i, seq := range seqs {
		rows[i] = []any{seq}
	}
	return rows
}

// micros is a duration as statements take it.
func micros(d time.Duration) int64 { return d.Microseconds() }
