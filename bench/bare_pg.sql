-- The row changes of Postroom, by hand: a message and its work at intake, a
-- lease at claim, an outcome instead of the work at the end.

-- name: receive
WITH new AS (
    INSERT INTO postroom_message (seq, consumer, source, id, grp, topic, payload, first_seen, revision)
    VALUES (nextval('postroom_sequence'), 'bench', 'bench', $1, '', 'bench', $2, statement_timestamp(), 1)
    ON CONFLICT (consumer, source, id) DO NOTHING
    RETURNING seq
)
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, place, ready_position, attempt, owner, fence, guard, revision, last_error)
SELECT seq, 'bench', 'bench', '', 7, 7, seq, 0, '', 0, 0, 1, '' FROM new;

-- name: receive_all
WITH new AS (
    INSERT INTO postroom_message (seq, consumer, source, id, grp, topic, payload, first_seen, revision)
    SELECT nextval('postroom_sequence'), 'bench', 'bench', i.id, '', 'bench', i.payload, statement_timestamp(), 1
    FROM unnest($1::text[], $2::bytea[]) AS i(id, payload)
    ON CONFLICT (consumer, source, id) DO NOTHING
    RETURNING seq
)
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, place, ready_position, attempt, owner, fence, guard, revision, last_error)
SELECT seq, 'bench', 'bench', '', 7, 7, seq, 0, '', 0, 0, 1, '' FROM new;

-- name: claim
-- That one is 1 keeps the planner from reading the whole table: as in Postroom.
WITH picked AS MATERIALIZED (
    SELECT ctid AS row, 1 AS one FROM postroom_work
    WHERE consumer = 'bench' AND place = 7 AND stage = 7
    ORDER BY ready_position LIMIT $1 FOR UPDATE SKIP LOCKED
), leased AS (
    UPDATE postroom_work w SET stage = 9, owner = $2, fence = fence + 1, lease_until = statement_timestamp() + $3::bigint * interval '1 microsecond'
    FROM picked WHERE w.ctid = picked.row AND picked.one = 1
    RETURNING w.seq, w.lease_until, w.ready_position
), noted AS (
    INSERT INTO postroom_claim (consumer, until, low, high)
    SELECT 'bench', min(lease_until), min(ready_position), max(ready_position) FROM leased HAVING count(*) > 0
)
SELECT m.seq, m.id, m.payload FROM leased JOIN postroom_message m USING (seq);

-- name: settle
WITH gone AS (
    DELETE FROM postroom_work WHERE seq = ANY($1) AND stage = 9 AND owner = $2 RETURNING seq, fence
)
INSERT INTO postroom_done (seq, consumer, done_at, handler, revision, superseded, discarded, note, fence, purged)
SELECT seq, 'bench', statement_timestamp(), 'bench', 1, false, false, '', fence, false FROM gone;

-- name: reap
WITH fallen AS (
    DELETE FROM postroom_claim WHERE consumer = 'bench' AND until <= statement_timestamp() RETURNING low, high
)
UPDATE postroom_work w SET stage = 7, ready_position = nextval('postroom_sequence'), owner = '', lease_until = NULL, lost = coalesce(lost, 0) + 1
FROM fallen f
WHERE w.consumer = 'bench' AND w.place = 7 AND w.ready_position BETWEEN f.low AND f.high
  AND w.stage = 9 AND w.lease_until <= statement_timestamp();

-- name: lanes
INSERT INTO postroom_lane (consumer, grp, position)
SELECT DISTINCT consumer, grp, 0 FROM postroom_work WHERE place = 5 ON CONFLICT DO NOTHING;

-- name: claim_heads
WITH free AS MATERIALIZED (
    SELECT l.grp FROM postroom_lane l
    WHERE l.consumer = 'bench' AND l.head IS NULL
      AND EXISTS (SELECT FROM postroom_work w WHERE w.consumer = 'bench' AND w.grp = l.grp AND w.place = 5 AND w.stage = 5)
    LIMIT $1 FOR UPDATE SKIP LOCKED
), head AS MATERIALIZED (
    SELECT w.seq FROM free CROSS JOIN LATERAL (
        SELECT seq FROM postroom_work WHERE consumer = 'bench' AND grp = free.grp AND place = 5 AND stage = 5 ORDER BY position LIMIT 1
    ) w
), leased AS (
    UPDATE postroom_work w SET stage = 9, owner = $2, fence = fence + 1, lease_until = statement_timestamp() + $3::bigint * interval '1 microsecond'
    FROM head WHERE w.seq = head.seq AND w.stage = 5
    RETURNING w.seq, w.grp
), held AS (
    UPDATE postroom_lane l SET head = leased.seq FROM leased WHERE l.consumer = 'bench' AND l.grp = leased.grp
)
SELECT m.seq, m.id, m.payload FROM leased JOIN postroom_message m USING (seq);

-- name: settle_heads
WITH gone AS (
    DELETE FROM postroom_work WHERE seq = ANY($1) AND stage = 9 AND owner = $2 RETURNING seq, fence, grp
), vacant AS (
    UPDATE postroom_lane l SET head = NULL FROM gone WHERE l.consumer = 'bench' AND l.grp = gone.grp AND l.head = gone.seq
)
INSERT INTO postroom_done (seq, consumer, done_at, handler, revision, superseded, discarded, note, fence, purged)
SELECT seq, 'bench', statement_timestamp(), 'bench', 1, false, false, '', fence, false FROM gone;
