-- Rows as intake and workers would have left them, written by the server itself.

-- name: numbers
SELECT setval('postroom_sequence', nextval('postroom_sequence') + {{n}}) - {{n}};

-- name: message
INSERT INTO postroom_message (seq, consumer, source, id, grp, topic, payload, first_seen, revision)
SELECT seq, 'bench', 'fill', lpad(seq::text, 36, '0'), {{group}}, 'bench', convert_to(repeat('abcdefgh', 32), 'UTF8'), statement_timestamp(), 1
FROM generate_series({{first}} + 1, {{first}} + {{n}}) seq;

-- name: ready
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, place, ready_position, attempt, owner, fence, guard, revision, last_error)
SELECT seq, 'bench', 'bench', {{group}}, 7, 7, seq, 0, '', 0, 0, 1, ''
FROM generate_series({{first}} + 1, {{first}} + {{n}}) seq;

-- name: arrived
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, place, position, ready_position, attempt, owner, fence, guard, revision, last_error)
SELECT seq, 'bench', 'bench', {{group}}, 5, 5, seq, seq, 0, '', 0, 0, 1, ''
FROM generate_series({{first}} + 1, {{first}} + {{n}}) seq;

-- name: queued
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, place, position, ready_position, attempt, owner, fence, guard, revision, last_error)
SELECT seq, 'bench', 'bench', {{group}}, 6, 6, seq, seq, 0, '', 0, 0, 1, ''
FROM generate_series({{first}} + 1, {{first}} + {{n}}) seq;

-- name: scheduled
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, place, ready_position, attempt, due, next, owner, fence, guard, revision, last_error)
SELECT seq, 'bench', 'bench', {{group}}, 3, 3, seq, 0, statement_timestamp() + interval '7 days', statement_timestamp() + interval '7 days', '', 0, 0, 1, ''
FROM generate_series({{first}} + 1, {{first}} + {{n}}) seq;

-- name: finished
INSERT INTO postroom_done (seq, consumer, done_at, handler, revision, superseded, discarded, note, fence, purged)
SELECT seq, 'bench', statement_timestamp(), 'bench', 1, false, false, '', 1, false
FROM generate_series({{first}} + 1, {{first}} + {{n}}) seq;

-- name: head
WITH head AS (
    UPDATE postroom_work SET stage = 3, place = 3, attempt = 1, retry = statement_timestamp() + interval '7 days', next = statement_timestamp() + interval '7 days'
    WHERE seq = {{first}} + 1
    RETURNING seq, consumer, grp, position
)
INSERT INTO postroom_lane (consumer, grp, head, position) SELECT consumer, grp, seq, position FROM head;
