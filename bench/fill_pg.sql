-- Rows as intake and workers would have left them, written by the server itself.

-- name: ready
WITH new AS (
    INSERT INTO postroom_message (seq, consumer, source, id, grp, topic, payload, hash_alg, correlation_id, causation_id, first_seen, revision)
    SELECT seq, 'bench', 'fill', lpad(seq::text, 36, '0'), '', 'bench', convert_to(repeat('abcdefgh', 32), 'UTF8'), '', '', '', statement_timestamp(), 1
    FROM (SELECT nextval('postroom_sequence') AS seq FROM generate_series(1, $1::int)) s
    RETURNING seq, grp
)
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, next,
                           owner, fence, guard, revision, last_error, last_seen)
SELECT seq, 'bench', 'bench', grp, 7, seq, seq, 0, 0, NULL::timestamptz, NULL::timestamptz, '', 0, 0, 1, '', statement_timestamp() FROM new;

-- name: grouped
WITH new AS (
    INSERT INTO postroom_message (seq, consumer, source, id, grp, topic, payload, hash_alg, correlation_id, causation_id, first_seen, revision)
    SELECT seq, 'bench', 'fill', lpad(seq::text, 36, '0'), 'g' || seq % 1000, 'bench', convert_to(repeat('abcdefgh', 32), 'UTF8'), '', '', '', statement_timestamp(), 1
    FROM (SELECT nextval('postroom_sequence') AS seq FROM generate_series(1, $1::int)) s
    RETURNING seq, grp
)
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, next,
                           owner, fence, guard, revision, last_error, last_seen)
SELECT seq, 'bench', 'bench', grp, 5, seq, seq, 0, 0, NULL::timestamptz, NULL::timestamptz, '', 0, 0, 1, '', statement_timestamp() FROM new;

-- name: scheduled
WITH new AS (
    INSERT INTO postroom_message (seq, consumer, source, id, grp, topic, payload, hash_alg, correlation_id, causation_id, first_seen, revision)
    SELECT seq, 'bench', 'fill', lpad(seq::text, 36, '0'), '', 'bench', convert_to(repeat('abcdefgh', 32), 'UTF8'), '', '', '', statement_timestamp(), 1
    FROM (SELECT nextval('postroom_sequence') AS seq FROM generate_series(1, $1::int)) s
    RETURNING seq, grp
)
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, next,
                           owner, fence, guard, revision, last_error, last_seen)
SELECT seq, 'bench', 'bench', grp, 3, seq, seq, 0, 0, statement_timestamp() + interval '7 days', statement_timestamp() + interval '7 days', '', 0, 0, 1, '', statement_timestamp() FROM new;

-- name: queued
WITH new AS (
    INSERT INTO postroom_message (seq, consumer, source, id, grp, topic, payload, hash_alg, correlation_id, causation_id, first_seen, revision)
    SELECT seq, 'bench', 'fill', lpad(seq::text, 36, '0'), 'one', 'bench', convert_to(repeat('abcdefgh', 32), 'UTF8'), '', '', '', statement_timestamp(), 1
    FROM (SELECT nextval('postroom_sequence') AS seq FROM generate_series(1, $1::int)) s
    RETURNING seq, grp
)
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, next,
                           owner, fence, guard, revision, last_error, last_seen)
SELECT seq, 'bench', 'bench', grp, 6, seq, seq, 0, 0, NULL::timestamptz, NULL::timestamptz, '', 0, 0, 1, '', statement_timestamp() FROM new;

-- name: finished
WITH new AS (
    INSERT INTO postroom_message (seq, consumer, source, id, grp, topic, payload, hash_alg, correlation_id, causation_id, first_seen, revision)
    SELECT seq, 'bench', 'fill', lpad(seq::text, 36, '0'), '', 'bench', convert_to(repeat('abcdefgh', 32), 'UTF8'), '', '', '', statement_timestamp(), 1
    FROM (SELECT nextval('postroom_sequence') AS seq FROM generate_series(1, $1::int)) s
    RETURNING seq, grp
)
INSERT INTO postroom_done (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
SELECT seq, 'bench', statement_timestamp(), 1, 'bench', 1, false, false, '', 1, statement_timestamp(), false FROM new;

-- name: head
WITH head AS (
    UPDATE postroom_work SET stage = 3, attempt = 1, retry = statement_timestamp() + interval '7 days', next = statement_timestamp() + interval '7 days'
    WHERE seq = (SELECT min(seq) FROM postroom_work WHERE stage = 6)
    RETURNING seq, consumer, grp, position
)
INSERT INTO postroom_lane (consumer, grp, head, position) SELECT consumer, grp, seq, position FROM head;
