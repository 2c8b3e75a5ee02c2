-- The statements of PostgreSQL. Rows come as arrays, one per column.

-- name: clock
SELECT clock_timestamp();

-- name: bound_waits
-- For transactions of ours only; user code keeps its own settings. The second
-- bound is for the others: if this program hangs in the middle, its locks go. To
-- compile our statements takes longer than they do.
SELECT set_config('lock_timeout', '{{wait}}', true), set_config('jit', 'off', true),
       set_config('idle_in_transaction_session_timeout', ({{wait}} * 2)::text, true);

-- name: brief_waits
-- For what the next pass can do as well.
SET LOCAL lock_timeout = 100;

-- name: hold_key
-- A caller's transaction announces its keys, so that nobody has to wait on them
-- unawares. The lock goes with the transaction. After a thousand it announces no
-- more: the server has room for some thousands of locks in all.
SELECT CASE
    WHEN coalesce(nullif(current_setting('postroom.held', true), ''), '0')::int >= 1000 THEN true
    ELSE pg_try_advisory_xact_lock($1)
         AND set_config('postroom.held', (coalesce(nullif(current_setting('postroom.held', true), ''), '0')::int + 1)::text, true) <> ''
END;

-- name: held_keys
-- Which of these keys sit in somebody's open transaction.
SELECT k FROM unnest($1::bigint[]) AS k
WHERE EXISTS (
    SELECT FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (l.classid::bigint << 32 | l.objid::bigint) = k
);

-- name: insert_message
-- Numbers follow arrival; rows are inserted in the order of their keys, so that
-- crossed batches wait instead of deadlocking.
WITH input AS MATERIALIZED (
    SELECT nextval('{{sequence}}') AS seq, i.*
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::bytea[], $10::text[],
                $11::bytea[], $12::timestamptz[], $13::timestamptz[], $14::timestamptz[], $15::text[], $16::text[])
         AS i(ord, consumer, source, id, grp, topic, payload, headers, hash, hash_alg,
              digest, due_at, expires_at, occurred_at, correlation_id, causation_id)
)
INSERT INTO {{message}} (seq, consumer, source, id, grp, topic, payload, headers, hash, hash_alg,
                         digest, due_at, expires_at, occurred_at, correlation_id, causation_id, first_seen, revision)
SELECT seq, consumer, source, id, grp, topic, payload, headers::jsonb, hash, nullif(hash_alg, ''),
       digest, due_at, expires_at, occurred_at, nullif(correlation_id, ''), nullif(causation_id, ''), statement_timestamp(), 1
FROM input
ORDER BY consumer COLLATE "C", source COLLATE "C", id COLLATE "C"
ON CONFLICT (consumer, source, id) DO NOTHING
RETURNING seq, consumer, source, id, clock_timestamp();

-- name: receive
-- insert_message and insert_work in one statement and so in one commit, for
-- messages that are to be queued. Rows come in the order of their keys; ord is
-- the place in the batch, which the numbers follow. Gives the numbers by place,
-- and which were used if not all were. A key that sits in somebody's transaction
-- is not waited for: the statement fails as busy, and the slow way sorts it out.
-- Texts that are mostly empty come as NULL, and arrays of nothing else empty.
WITH bound AS MATERIALIZED (
    SELECT set_config('lock_timeout', '100', true)
), numbers AS MATERIALIZED (
    SELECT array_agg(nextval('{{sequence}}')) AS n FROM bound, generate_series(1, cardinality($1::bigint[]))
), fresh AS (
    INSERT INTO {{message}} (seq, consumer, source, id, grp, topic, payload, headers, hash, hash_alg,
                             digest, due_at, expires_at, occurred_at, correlation_id, causation_id, first_seen, revision)
    SELECT (SELECT n FROM numbers)[ord::int], consumer, source, id, coalesce(grp, ''), topic, payload, headers::jsonb, hash, hash_alg,
           digest, due_at, expires_at, occurred_at, correlation_id, causation_id, statement_timestamp(), 1
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::bytea[], $10::text[],
                $11::bytea[], $12::timestamptz[], $13::timestamptz[], $14::timestamptz[], $15::text[], $16::text[])
         AS i(ord, consumer, source, id, grp, topic, payload, headers, hash, hash_alg,
              digest, due_at, expires_at, occurred_at, correlation_id, causation_id)
    ON CONFLICT (consumer, source, id) DO NOTHING
    RETURNING seq, consumer, grp, topic, due_at, expires_at
), work AS (
    INSERT INTO {{work}} (seq, consumer, topic, grp, stage, place, position, ready_position, attempt, lost, due, retry, next, expires,
                          owner, fence, lease_until, guard, revision, last_error, last_seen)
    SELECT seq, consumer, topic, grp, stage, stage,
           CASE WHEN grp <> '' THEN seq END, seq, 0, NULL, due_at, NULL, due_at, expires_at, '', 0, NULL, 0, 1, '', NULL
    FROM fresh,
         LATERAL (SELECT CASE WHEN due_at > statement_timestamp() THEN CASE grp WHEN '' THEN 3 ELSE 4 END
                              ELSE CASE grp WHEN '' THEN 7 ELSE 5 END END AS stage) s
)
SELECT array_to_string((SELECT n FROM numbers), ','),
       CASE WHEN count(*) < cardinality($1::bigint[]) THEN string_agg(seq::text, ',') END,
       count(*) < cardinality($1::bigint[]),
       statement_timestamp()
FROM fresh;

-- name: receive_new
-- receive, for messages of one consumer that are all new, as is to be hoped: a key
-- that is known fails it as refused. Without the look for conflicts it costs a fifth
-- less, and 48 bytes of log less a message. Rows come in the order of the batch, as
-- do their numbers: two batches that cross wait for one another, until the bound.
WITH bound AS MATERIALIZED (
    SELECT set_config('lock_timeout', '100', true)
), fresh AS (
    INSERT INTO {{message}} (seq, consumer, source, id, grp, topic, payload, digest, headers, hash, hash_alg,
                             due_at, expires_at, occurred_at, correlation_id, causation_id, first_seen, revision)
    SELECT nextval('{{sequence}}'), $14::text, source, id, '', topic, payload, digest, headers::jsonb, hash, hash_alg,
           due_at, expires_at, occurred_at, correlation_id, causation_id, statement_timestamp(), 1
    FROM bound,
         unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::text[], $7::bytea[], $8::text[],
                $9::timestamptz[], $10::timestamptz[], $11::timestamptz[], $12::text[], $13::text[])
         AS i(source, id, topic, payload, digest, headers, hash, hash_alg,
              due_at, expires_at, occurred_at, correlation_id, causation_id)
    RETURNING seq, topic, due_at, expires_at
), work AS (
    INSERT INTO {{work}} (seq, consumer, topic, grp, stage, place, ready_position, attempt, due, next, expires,
                          owner, fence, guard, revision, last_error)
    SELECT seq, $14, topic, '', stage, stage, seq, 0, due_at, due_at, expires_at, '', 0, 0, 1, ''
    FROM fresh, LATERAL (SELECT CASE WHEN due_at > statement_timestamp() THEN 3 ELSE 7 END AS stage) s
)
SELECT string_agg(seq::text, ','), NULL, false, statement_timestamp() FROM fresh;

-- name: receive_new_plain
-- receive_new, for messages with a topic and a payload and nothing else: each array
-- costs, however little is in it.
WITH bound AS MATERIALIZED (
    SELECT set_config('lock_timeout', '100', true)
), fresh AS (
    INSERT INTO {{message}} (seq, consumer, source, id, grp, topic, payload, digest, first_seen, revision)
    SELECT nextval('{{sequence}}'), $6::text, source, id, '', topic, payload, digest, statement_timestamp(), 1
    FROM bound, unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bytea[]) AS i(source, id, topic, payload, digest)
    RETURNING seq, topic
), work AS (
    INSERT INTO {{work}} (seq, consumer, topic, grp, stage, place, ready_position, attempt, owner, fence, guard, revision, last_error)
    SELECT seq, $6, topic, '', 7, 7, seq, 0, '', 0, 0, 1, ''
    FROM fresh
)
SELECT string_agg(seq::text, ','), NULL, false, statement_timestamp() FROM fresh;

-- name: receive_grouped
-- receive, for a batch with groups, which have an order.
WITH bound AS MATERIALIZED (
    SELECT set_config('lock_timeout', '100', true)
), numbers AS MATERIALIZED (
    SELECT array_agg(nextval('{{sequence}}')) AS n FROM bound, generate_series(1, cardinality($1::bigint[]))
), moved AS MATERIALIZED (
    -- A known message that may take a new position takes it in the order of the
    -- batch: the slow way does that for all of them.
    SELECT FROM unnest($2::text[], $3::text[], $4::text[]) AS i(consumer, source, id)
    JOIN {{message}} m ON m.consumer = i.consumer AND m.source = i.source AND m.id = i.id
    JOIN {{work}} w ON w.seq = m.seq
    WHERE w.stage NOT IN (5, 6, 7, 10)
    LIMIT 1
), fresh AS (
    INSERT INTO {{message}} (seq, consumer, source, id, grp, topic, payload, headers, hash, hash_alg,
                             digest, due_at, expires_at, occurred_at, correlation_id, causation_id, first_seen, revision)
    SELECT (SELECT n FROM numbers)[ord::int], consumer, source, id, coalesce(grp, ''), topic, payload, headers::jsonb, hash, hash_alg,
           digest, due_at, expires_at, occurred_at, correlation_id, causation_id, statement_timestamp(), 1
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[], $8::text[], $9::bytea[], $10::text[],
                $11::bytea[], $12::timestamptz[], $13::timestamptz[], $14::timestamptz[], $15::text[], $16::text[])
         AS i(ord, consumer, source, id, grp, topic, payload, headers, hash, hash_alg,
              digest, due_at, expires_at, occurred_at, correlation_id, causation_id)
    WHERE NOT EXISTS (SELECT FROM moved)
    ON CONFLICT (consumer, source, id) DO NOTHING
    RETURNING seq, consumer, grp, topic, due_at, expires_at
), work AS (
    INSERT INTO {{work}} (seq, consumer, topic, grp, stage, place, position, ready_position, attempt, lost, due, retry, next, expires,
                          owner, fence, lease_until, guard, revision, last_error, last_seen)
    SELECT seq, consumer, topic, grp, stage, stage,
           CASE WHEN grp <> '' THEN seq END, seq, 0, NULL, due_at, NULL, due_at, expires_at, '', 0, NULL, 0, 1, '', NULL
    FROM fresh,
         LATERAL (SELECT CASE WHEN due_at > statement_timestamp() THEN CASE grp WHEN '' THEN 3 ELSE 4 END
                              ELSE CASE grp WHEN '' THEN 7 ELSE 5 END END AS stage) s
)
SELECT array_to_string((SELECT n FROM numbers), ','),
       CASE WHEN count(*) < cardinality($1::bigint[]) THEN string_agg(seq::text, ',') END,
       count(*) < cardinality($1::bigint[]),
       statement_timestamp()
FROM fresh;

-- name: ack
-- delete_work and insert_done in one statement and so in one commit, for plain
-- leases that are current. What it does not give back goes the slow way, and all
-- of it does when a row is locked for longer than a moment.
WITH bound AS MATERIALIZED (
    SELECT set_config('lock_timeout', '100', true)
), gone AS (
    DELETE FROM {{work}} w
    USING bound, unnest($1::bigint[], $2::text[], $3::bigint[], $4::int[], $5::text[], $6::boolean[], $7::text[])
          AS i(seq, owner, fence, revision, handler, discarded, note)
    WHERE w.seq = i.seq AND w.stage = 9 AND w.guard = 0 AND w.grp = '' AND w.owner = i.owner AND w.fence = i.fence
    RETURNING w.seq, w.consumer, w.attempt, w.fence, w.last_seen, i.revision < w.revision AS superseded,
              i.revision, i.handler, i.discarded, i.note
)
INSERT INTO {{done}} (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
SELECT seq, consumer, statement_timestamp(), nullif(attempt + 1, 1), handler, revision, superseded, discarded, note, fence, last_seen, false
FROM gone
RETURNING seq, superseded;

-- name: ack_numbers
-- ack, for leases that end alike and whose content is current: a third cheaper.
-- Gives their numbers, if not all were found.
WITH bound AS MATERIALIZED (
    SELECT set_config('lock_timeout', '100', true)
), gone AS (
    DELETE FROM {{work}} w
    USING bound
    WHERE w.seq = ANY($1::bigint[]) AND w.stage = 9 AND w.guard = 0 AND w.grp = ''
      AND w.owner = $2 AND w.fence = $3 AND w.revision = $4
    RETURNING w.seq, w.consumer, w.attempt, w.last_seen
), ended AS (
    INSERT INTO {{done}} (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
    SELECT seq, consumer, statement_timestamp(), nullif(attempt + 1, 1), $5, $4, false, $6, $7, $3, last_seen, false
    FROM gone
)
SELECT count(*), CASE WHEN count(*) < cardinality($1::bigint[]) THEN string_agg(seq::text, ',') END FROM gone;

-- name: ack_grouped
-- ack_numbers for messages that may be in groups, whose lanes it vacates, in the
-- order of lanes. By key: the ctid of a lane that was waited for is one that this
-- statement can't see. fill_vacated follows in the same transaction, and must see
-- what others committed while this one waited: at another level all goes the slow way.
WITH bound AS MATERIALIZED (
    SELECT set_config('lock_timeout', '100', true) WHERE current_setting('transaction_isolation') = 'read committed'
), gone AS (
    DELETE FROM {{work}} w
    USING bound
    WHERE w.seq = ANY($1::bigint[]) AND w.stage = 9 AND w.guard = 0
      AND w.owner = $2 AND w.fence = $3 AND w.revision = $4
    RETURNING w.seq, w.consumer, w.grp, w.attempt, w.last_seen
), ended AS (
    INSERT INTO {{done}} (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
    SELECT seq, consumer, statement_timestamp(), nullif(attempt + 1, 1), $5, $4, false, $6, $7, $3, last_seen, false
    FROM gone
), held AS MATERIALIZED (
    SELECT l.consumer, l.grp, 1 AS one
    FROM (SELECT consumer, grp, seq FROM gone WHERE grp <> '' ORDER BY consumer, grp) g
    CROSS JOIN LATERAL (SELECT consumer, grp FROM {{lane}} WHERE consumer = g.consumer AND grp = g.grp AND head = g.seq FOR UPDATE) l
), vacated AS (
    UPDATE {{lane}} l SET head = NULL FROM held h WHERE l.consumer = h.consumer AND l.grp = h.grp AND h.one = 1
)
SELECT count(*), CASE WHEN count(*) < cardinality($1::bigint[]) THEN string_agg(seq::text, ',') END FROM gone;

-- name: fill_vacated
-- vacant_lanes, lowest_queued, ready, set_heads and delete_lanes in one statement, for
-- the lanes that this transaction has vacated: it holds them since a statement
-- before, so that this one sees all that was sorted into them. Their versions are
-- its own, and have a ctid; messages go by key. Gives how many lanes it had to leave,
-- since somebody holds their lowest message.
WITH own AS MATERIALIZED (
    SELECT l.ctid, l.grp, coalesce(a.seq, b.seq) AS seq, coalesce(a.position, b.position) AS position, 1 AS one
    FROM {{lane}} l
    LEFT JOIN LATERAL (
        SELECT w.seq, w.position FROM {{work}} w
        WHERE w.consumer = $1 AND w.grp = l.grp AND w.place = 6 AND w.position >= l.position
        ORDER BY w.position LIMIT 1
    ) a ON true
    LEFT JOIN LATERAL (
        SELECT w.seq, w.position FROM {{work}} w
        WHERE a.seq IS NULL AND w.consumer = $1 AND w.grp = l.grp AND w.place = 6
        ORDER BY w.position LIMIT 1
    ) b ON true
    WHERE l.consumer = $1 AND l.head IS NULL AND l.xmin = pg_current_xact_id()::xid
), heads AS MATERIALIZED (
    SELECT o.ctid, w.seq, o.position, nextval('{{sequence}}') AS turn, 1 AS one
    FROM (SELECT * FROM own WHERE seq IS NOT NULL ORDER BY position) o
    CROSS JOIN LATERAL (SELECT seq FROM {{work}} WHERE seq = o.seq AND grp = o.grp AND stage = 6 FOR UPDATE SKIP LOCKED) w
), readied AS (
    UPDATE {{work}} w
    SET stage = CASE WHEN w.lost >= 3 THEN 8 ELSE 7 END, place = CASE WHEN w.lost >= 3 THEN 8 ELSE 7 END, ready_position = h.turn
    FROM heads h WHERE w.seq = h.seq AND h.one = 1
), led AS (
    UPDATE {{lane}} l SET head = h.seq, position = h.position FROM heads h WHERE l.ctid = h.ctid AND h.one = 1
), emptied AS (
    DELETE FROM {{lane}} l USING own o WHERE o.seq IS NULL AND l.ctid = o.ctid AND o.one = 1
)
SELECT (SELECT count(o.seq) FROM own o) - (SELECT count(*) FROM heads);

-- name: lookup
-- A statement of its own after the insert: inside the same one it would not see
-- what the insert conflicted with.
SELECT m.consumer, m.source, m.id, m.seq, m.topic, m.grp, m.revision, m.hash, m.hash_alg, m.digest, statement_timestamp(),
       w.seq, w.consumer, w.topic, w.grp, w.stage, coalesce(w.position, w.seq), w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, coalesce(w.last_seen, m.first_seen),
       d.seq, d.consumer, d.done_at, coalesce(d.runs, 1), d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, coalesce(d.last_seen, m.first_seen), d.purged
FROM unnest($1::text[], $2::text[], $3::text[]) AS k(consumer, source, id)
JOIN {{message}} m ON m.consumer = k.consumer AND m.source = k.source AND m.id = k.id
LEFT JOIN {{work}} w ON w.seq = m.seq
LEFT JOIN {{done}} d ON d.seq = m.seq;

-- name: lock_work
SELECT w.seq, w.consumer, w.topic, w.grp, w.stage, coalesce(w.position, w.seq), w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen, statement_timestamp()
FROM {{work}} w WHERE w.seq = ANY($1::bigint[]) ORDER BY w.seq FOR UPDATE SKIP LOCKED;

-- name: exists_work
SELECT seq FROM {{work}} WHERE seq = ANY($1::bigint[]);

-- name: lock_done
SELECT seq FROM {{done}} WHERE seq = ANY($1::bigint[]) ORDER BY seq FOR UPDATE SKIP LOCKED;

-- name: positions
SELECT nextval('{{sequence}}') FROM generate_series(1, $1::int);

-- name: insert_work
INSERT INTO {{work}} (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, retry, next, expires,
                      owner, fence, lease_until, guard, revision, last_error, last_seen, place)
SELECT seq, consumer, topic, grp, stage, position, ready_position, attempt, nullif(lost, 0), due, retry, next, expires,
       owner, fence, lease_until, guard, revision, last_error, last_seen, stage
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::bigint[], $7::bigint[], $8::int[], $9::int[],
            $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[],
            $14::text[], $15::bigint[], $16::timestamptz[], $17::smallint[], $18::int[], $19::text[], $20::timestamptz[])
     AS i(seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, retry, next, expires,
          owner, fence, lease_until, guard, revision, last_error, last_seen);

-- name: update_work
UPDATE {{work}} w
SET topic = i.topic, grp = i.grp, stage = i.stage, place = i.stage, position = i.position, ready_position = i.ready_position,
    attempt = i.attempt, lost = nullif(i.lost, 0), due = i.due, retry = i.retry, next = i.next, expires = i.expires,
    owner = i.owner, fence = i.fence, lease_until = i.lease_until, guard = i.guard, revision = i.revision,
    last_error = i.last_error, last_seen = i.last_seen
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::bigint[], $7::bigint[], $8::int[], $9::int[],
            $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[],
            $14::text[], $15::bigint[], $16::timestamptz[], $17::smallint[], $18::int[], $19::text[], $20::timestamptz[])
     AS i(seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, retry, next, expires,
          owner, fence, lease_until, guard, revision, last_error, last_seen)
WHERE w.seq = i.seq;

-- name: delete_work
DELETE FROM {{work}} WHERE seq = ANY($1::bigint[]);

-- name: insert_done
INSERT INTO {{done}} (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
SELECT seq, consumer, done_at, nullif(runs, 1), handler, revision, superseded, discarded, note, fence, last_seen, purged
FROM unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::int[], $5::text[], $6::int[], $7::boolean[], $8::boolean[],
            $9::text[], $10::bigint[], $11::timestamptz[], $12::boolean[])
     AS i(seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged);

-- name: delete_done
DELETE FROM {{done}} WHERE seq = ANY($1::bigint[]);

-- name: delete_message
DELETE FROM {{message}} WHERE seq = ANY($1::bigint[]);

-- name: update_content
UPDATE {{message}} m
SET topic = i.topic, payload = i.payload, headers = i.headers::jsonb, hash = i.hash, hash_alg = nullif(i.hash_alg, ''),
    digest = i.digest, due_at = i.due_at, expires_at = i.expires_at, occurred_at = i.occurred_at,
    correlation_id = nullif(i.correlation_id, ''), causation_id = nullif(i.causation_id, ''),
    revision = i.revision, grp = CASE WHEN i.regroup THEN i.grp ELSE m.grp END
FROM unnest($1::bigint[], $2::int[], $3::boolean[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::bytea[], $9::text[], $10::bytea[],
            $11::timestamptz[], $12::timestamptz[], $13::timestamptz[], $14::text[], $15::text[])
     AS i(seq, revision, regroup, grp, topic, payload, headers, hash, hash_alg, digest, due_at, expires_at, occurred_at, correlation_id, causation_id)
WHERE m.seq = i.seq;

-- name: adopt_hash
UPDATE {{message}} m SET hash = i.hash, hash_alg = nullif(i.hash_alg, '')
FROM unnest($1::bigint[], $2::bytea[], $3::text[]) AS i(seq, hash, hash_alg)
WHERE m.seq = i.seq AND m.hash IS NULL;

-- name: touch_work
UPDATE {{work}} SET last_seen = statement_timestamp()
WHERE seq IN (SELECT t.seq FROM {{work}} t JOIN {{message}} m ON m.seq = t.seq
              WHERE t.seq = ANY($1::bigint[]) AND coalesce(t.last_seen, m.first_seen) <= statement_timestamp() - interval '1 second'
              ORDER BY t.seq FOR UPDATE OF t SKIP LOCKED);

-- name: touch_done
UPDATE {{done}} SET last_seen = statement_timestamp()
WHERE seq IN (SELECT t.seq FROM {{done}} t JOIN {{message}} m ON m.seq = t.seq
              WHERE t.seq = ANY($1::bigint[]) AND coalesce(t.last_seen, m.first_seen) <= statement_timestamp() - interval '1 second'
              ORDER BY t.seq FOR UPDATE OF t SKIP LOCKED);

-- name: vacate_lanes
WITH held AS MATERIALIZED (
    SELECT l.consumer, l.grp, l.head
    FROM unnest($1::text[], $2::text[], $3::bigint[]) AS i(consumer, grp, seq)
    JOIN {{lane}} l ON l.consumer = i.consumer AND l.grp = i.grp AND l.head = i.seq
    ORDER BY l.consumer, l.grp
    FOR UPDATE OF l
)
UPDATE {{lane}} l SET head = NULL FROM held h
WHERE l.consumer = h.consumer AND l.grp = h.grp AND l.head = h.head;

-- name: lane_heads
SELECT l.head
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS i(consumer, grp, seq)
JOIN {{lane}} l ON l.consumer = i.consumer AND l.grp = i.grp AND l.head = i.seq
ORDER BY l.consumer, l.grp
FOR UPDATE OF l;

-- name: peek
-- One look at whether anything has to be made ready before a claim.
SELECT EXISTS (SELECT FROM {{work}} WHERE consumer = $1 AND place IN (3, 4) AND next <= statement_timestamp()),
       EXISTS (
           -- Topic by topic: a paused one may have a great many messages.
           WITH RECURSIVE t AS (
               SELECT (SELECT min(topic) FROM {{work}} WHERE consumer = $1 AND place = 11) AS topic
               UNION ALL
               SELECT (SELECT min(w.topic) FROM {{work}} w WHERE w.consumer = $1 AND w.place = 11 AND w.topic > t.topic)
               FROM t WHERE t.topic IS NOT NULL
           )
           SELECT FROM t WHERE t.topic IS NOT NULL
             AND NOT EXISTS (SELECT FROM {{pause}} p WHERE p.consumer = $1 AND p.topic = t.topic)
       ),
       EXISTS (SELECT FROM {{work}} WHERE consumer = $1 AND place = 5),
       EXISTS (SELECT FROM {{lane}} WHERE consumer = $1 AND head IS NULL);

-- name: fallen
SELECT seq, stage FROM {{work}}
WHERE consumer = $1 AND place IN (3, 4) AND next <= statement_timestamp()
ORDER BY next, seq LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: parked
SELECT w.seq, w.stage FROM {{work}} w
WHERE w.consumer = $1 AND w.place = 11
  AND NOT EXISTS (SELECT FROM {{pause}} p WHERE p.consumer = w.consumer AND p.topic = w.topic)
ORDER BY w.ready_position LIMIT $2
FOR UPDATE OF w SKIP LOCKED;

-- name: arrive
UPDATE {{work}} w SET stage = 5, place = 5, position = i.n
FROM unnest($1::bigint[], $2::bigint[]) AS i(seq, n) WHERE w.seq = i.seq;

-- name: ready
UPDATE {{work}} w
SET stage = CASE WHEN w.lost >= 3 THEN 8 ELSE 7 END, place = CASE WHEN w.lost >= 3 THEN 8 ELSE 7 END, ready_position = i.n
FROM unnest($1::bigint[], $2::bigint[]) AS i(seq, n) WHERE w.seq = i.seq;

-- name: arrived_groups
WITH RECURSIVE g AS (
    (SELECT grp FROM {{work}} WHERE consumer = $1 AND place = 5 ORDER BY grp LIMIT 1)
    UNION ALL
    SELECT (SELECT w.grp FROM {{work}} w WHERE w.consumer = $1 AND w.place = 5 AND w.grp > g.grp ORDER BY w.grp LIMIT 1)
    FROM g WHERE g.grp IS NOT NULL
)
SELECT grp FROM g WHERE grp IS NOT NULL LIMIT $2;

-- name: insert_lanes
INSERT INTO {{lane}} (consumer, grp, head, position)
SELECT consumer, grp, NULL, 0 FROM unnest($1::text[], $2::text[]) AS i(consumer, grp)
ORDER BY consumer COLLATE "C", grp COLLATE "C"
ON CONFLICT (consumer, grp) DO NOTHING;

-- name: lock_lanes
SELECT l.grp FROM {{lane}} l
WHERE (l.consumer, l.grp) IN (SELECT * FROM unnest($1::text[], $2::text[]))
ORDER BY l.consumer, l.grp FOR UPDATE SKIP LOCKED;

-- name: arrivals
SELECT w.grp, w.seq, w.position
FROM unnest($1::text[], $2::text[]) AS i(consumer, grp)
CROSS JOIN LATERAL (
    SELECT w.grp, w.seq, w.position FROM {{work}} w
    WHERE w.consumer = i.consumer AND w.grp = i.grp AND w.place = 5
    ORDER BY w.position LIMIT $3
) w
ORDER BY w.grp, w.position;

-- name: enqueue
UPDATE {{work}} SET stage = 6, place = 6 WHERE seq = ANY($1::bigint[]);

-- name: lower_hint
UPDATE {{lane}} l SET position = i.position
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS i(consumer, grp, position)
WHERE l.consumer = i.consumer AND l.grp = i.grp AND l.position > i.position;

-- name: vacant_lanes
SELECT grp, position FROM {{lane}}
WHERE consumer = $1 AND head IS NULL
ORDER BY consumer, grp LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: lowest_queued
SELECT w.grp, w.seq, w.position
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS i(consumer, grp, position)
CROSS JOIN LATERAL (
    SELECT w.grp, w.seq, w.position FROM {{work}} w
    WHERE w.consumer = i.consumer AND w.grp = i.grp AND w.place = 6 AND w.position >= i.position
    ORDER BY w.position LIMIT 1
) w;

-- name: set_heads
UPDATE {{lane}} l SET head = i.seq, position = i.position
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS i(consumer, grp, seq, position)
WHERE l.consumer = i.consumer AND l.grp = i.grp;

-- name: delete_lanes
DELETE FROM {{lane}} l USING unnest($1::text[], $2::text[]) AS i(consumer, grp)
WHERE l.consumer = i.consumer AND l.grp = i.grp AND l.head IS NULL;

-- name: claim
-- Materialized: the planner may otherwise lock more rows than the limit. By
-- ctid: a third faster than by key. That one is 1 the planner takes for rare, and
-- fetches the few rows that it expects one by one; else it would read all of a table
-- of less than some 40,000 rows. What is leased stays in the index, until it is
-- settled.
WITH picked AS MATERIALIZED (
    SELECT ctid, 1 AS one FROM {{work}}
    WHERE consumer = $1 AND ready_position >= $5 AND place = 7 AND stage = 7
    ORDER BY ready_position LIMIT $2
    FOR UPDATE SKIP LOCKED
), leased AS (
    UPDATE {{work}} w
    SET stage = 9, owner = $3, fence = w.fence + 1, guard = 0,
        lease_until = statement_timestamp() + $4::bigint * interval '1 microsecond'
    FROM picked p WHERE w.ctid = p.ctid AND p.one = 1
    RETURNING w.seq, w.ready_position, w.attempt, w.expires, w.fence, w.lease_until, w.revision, w.last_error, w.last_seen
), noted AS (
    INSERT INTO {{claim}} (consumer, until, low, high)
    SELECT $1, min(lease_until), min(ready_position), max(ready_position) FROM leased HAVING count(*) > 0
)
SELECT m.consumer, m.source, m.id, m.grp, m.topic, m.payload, m.headers::text, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision,
       w.seq, w.ready_position, w.attempt, w.expires, w.fence, w.lease_until, w.revision, w.last_error, coalesce(w.last_seen, m.first_seen), statement_timestamp()
FROM leased w JOIN {{message}} m ON m.seq = w.seq;

-- name: claim_suspect
WITH picked AS MATERIALIZED (
    SELECT ctid, 1 AS one FROM {{work}}
    WHERE consumer = $1 AND ready_position >= $5 AND place = 8 AND stage = 8
    ORDER BY ready_position LIMIT $2
    FOR UPDATE SKIP LOCKED
), leased AS (
    UPDATE {{work}} w
    SET stage = 9, owner = $3, fence = w.fence + 1, guard = 0,
        lease_until = statement_timestamp() + $4::bigint * interval '1 microsecond'
    FROM picked p WHERE w.ctid = p.ctid AND p.one = 1
    RETURNING w.seq, w.ready_position, w.attempt, w.expires, w.fence, w.lease_until, w.revision, w.last_error, w.last_seen
), noted AS (
    INSERT INTO {{claim}} (consumer, until, low, high)
    SELECT $1, min(lease_until), min(ready_position), max(ready_position) FROM leased HAVING count(*) > 0
)
SELECT m.consumer, m.source, m.id, m.grp, m.topic, m.payload, m.headers::text, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision,
       w.seq, w.ready_position, w.attempt, w.expires, w.fence, w.lease_until, w.revision, w.last_error, coalesce(w.last_seen, m.first_seen), statement_timestamp()
FROM leased w JOIN {{message}} m ON m.seq = w.seq;

-- name: messages
SELECT m.consumer, m.source, m.id, m.grp, m.topic, m.payload, m.headers::text, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq
FROM {{message}} m WHERE m.seq = ANY($1::bigint[]);

-- name: expired_leases
-- Claims tell where to look: each by itself, or the planner would read everything
-- and compare. By an array for the same reason.
WITH fallen AS MATERIALIZED (
    SELECT low, high FROM {{claim}} WHERE consumer = $1 AND until <= statement_timestamp()
    ORDER BY until LIMIT 1000
), lapsed AS MATERIALIZED (
    SELECT w.seq FROM fallen f CROSS JOIN LATERAL (
        SELECT seq FROM {{work}}
        WHERE consumer = $1 AND place = 7 AND ready_position BETWEEN f.low AND f.high
          AND stage = 9 AND lease_until <= statement_timestamp() OFFSET 0
    ) w
    UNION ALL
    SELECT w.seq FROM fallen f CROSS JOIN LATERAL (
        SELECT seq FROM {{work}}
        WHERE consumer = $1 AND place = 8 AND ready_position BETWEEN f.low AND f.high
          AND stage = 9 AND lease_until <= statement_timestamp() OFFSET 0
    ) w
    UNION ALL
    SELECT seq FROM {{work}} WHERE consumer = $1 AND place = 9 AND lease_until <= statement_timestamp()
    LIMIT 4 * $2
)
SELECT w.seq, w.consumer, w.topic, w.grp, w.stage, coalesce(w.position, w.seq), w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, coalesce(w.last_seen, m.first_seen), statement_timestamp(), m.source, m.id
FROM {{work}} w JOIN {{message}} m ON m.seq = w.seq
WHERE w.seq = ANY(ARRAY(SELECT seq FROM lapsed)) AND w.stage = 9 AND w.lease_until <= statement_timestamp()
ORDER BY w.lease_until, w.seq LIMIT $2
FOR UPDATE OF w SKIP LOCKED;

-- name: forget_claims
-- Claims of which nothing is leased any more go; others wait from now on for the
-- first of their leases that ends. Gives whether there may be more of them.
WITH fallen AS MATERIALIZED (
    SELECT ctid AS row, low, high FROM {{claim}} WHERE consumer = $1 AND until <= statement_timestamp()
    ORDER BY until LIMIT 1000
    FOR UPDATE SKIP LOCKED
), held AS MATERIALIZED (
    SELECT f.row, f.low, f.high, least(
        (SELECT min(w.lease_until) FROM {{work}} w
         WHERE w.consumer = $1 AND w.place = 7 AND w.ready_position BETWEEN f.low AND f.high AND w.stage = 9),
        (SELECT min(w.lease_until) FROM {{work}} w
         WHERE w.consumer = $1 AND w.place = 8 AND w.ready_position BETWEEN f.low AND f.high AND w.stage = 9)
    ) AS until FROM fallen f
), moved AS MATERIALIZED (
    SELECT * FROM held WHERE until IS NULL OR until > statement_timestamp()
), gone AS (
    DELETE FROM {{claim}} c USING moved m WHERE c.ctid = m.row
), kept AS (
    INSERT INTO {{claim}} AS c (consumer, until, low, high)
    SELECT $1, until, low, max(high) FROM moved WHERE until IS NOT NULL GROUP BY until, low
    ON CONFLICT (consumer, until, low) DO UPDATE SET high = greatest(c.high, excluded.high)
)
SELECT (SELECT count(*) FROM fallen) = 1000 AND EXISTS (SELECT FROM moved);

-- name: extend
-- A lease that ends earlier than before must be found in time.
WITH extended AS (
    UPDATE {{work}} w SET lease_until = i.lease_until
    FROM unnest($1::bigint[], $2::timestamptz[]) AS i(seq, lease_until) JOIN {{work}} b ON b.seq = i.seq
    WHERE w.seq = i.seq
    RETURNING w.consumer, w.lease_until, w.ready_position, b.lease_until AS before
)
INSERT INTO {{claim}} (consumer, until, low, high)
SELECT consumer, lease_until, ready_position, ready_position FROM extended WHERE lease_until < before
ON CONFLICT DO NOTHING;

-- name: old_done
-- The done row is the token: whoever holds it may remove the message.
SELECT seq FROM {{done}}
WHERE consumer = $1 AND purged = $4 AND done_at <= statement_timestamp() - $2::bigint * interval '1 microsecond'
ORDER BY done_at, seq LIMIT $3
FOR UPDATE SKIP LOCKED;

-- name: purge_payloads
UPDATE {{message}} SET payload = NULL, headers = NULL WHERE seq = ANY($1::bigint[]);

-- name: mark_purged
UPDATE {{done}} SET purged = true WHERE seq = ANY($1::bigint[]);

-- name: get
SELECT m.consumer, m.source, m.id, m.grp, m.topic, m.payload, m.headers::text, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       w.seq, w.consumer, w.topic, w.grp, w.stage, coalesce(w.position, w.seq), w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, coalesce(w.last_seen, m.first_seen),
       d.seq, d.consumer, d.done_at, coalesce(d.runs, 1), d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, coalesce(d.last_seen, m.first_seen), d.purged
FROM {{message}} m LEFT JOIN {{work}} w ON w.seq = m.seq LEFT JOIN {{done}} d ON d.seq = m.seq
WHERE m.consumer = $1 AND m.source = $2 AND m.id = $3;

-- name: list_live
SELECT m.consumer, m.source, m.id, m.grp, m.topic, CASE WHEN $7 THEN m.payload END, CASE WHEN $7 THEN m.headers::text END, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       w.seq, w.consumer, w.topic, w.grp, w.stage, coalesce(w.position, w.seq), w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, coalesce(w.last_seen, m.first_seen),
       NULL::bigint, NULL, NULL::timestamptz, NULL::int, NULL, NULL::int, NULL::boolean, NULL::boolean, NULL, NULL::bigint, NULL::timestamptz, NULL::boolean
FROM {{work}} w JOIN {{message}} m ON m.seq = w.seq
WHERE ($1 = '' OR w.consumer = $1) AND w.seq > $2
  AND ($3 = '' OR m.topic = $3) AND ($4 = '' OR m.source = $4) AND ($5 = '' OR m.grp = $5)
  AND CASE $6::int WHEN 1 THEN w.stage = 1 WHEN 2 THEN w.stage NOT IN (1, 10) ELSE w.stage = 10 END
  AND ($9::bigint = 0 OR greatest(m.first_seen, m.due_at) < statement_timestamp() - $9::bigint * interval '1 microsecond')
ORDER BY w.seq LIMIT $8;

-- name: list_done
SELECT m.consumer, m.source, m.id, m.grp, m.topic, CASE WHEN $7 THEN m.payload END, CASE WHEN $7 THEN m.headers::text END, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       NULL::bigint, NULL, NULL, NULL, NULL::int, NULL::bigint, NULL::bigint, NULL::int, NULL::int, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz,
       NULL, NULL::bigint, NULL::timestamptz, NULL::int, NULL::int, NULL, NULL::timestamptz,
       d.seq, d.consumer, d.done_at, coalesce(d.runs, 1), d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, coalesce(d.last_seen, m.first_seen), d.purged
FROM {{done}} d JOIN {{message}} m ON m.seq = d.seq
WHERE ($1 = '' OR d.consumer = $1) AND d.seq > $2
  AND ($3 = '' OR m.topic = $3) AND ($4 = '' OR m.source = $4) AND ($5 = '' OR m.grp = $5)
  AND $6::int = 3
  AND ($9::timestamptz IS NULL OR d.done_at >= $9) AND ($10::timestamptz IS NULL OR d.done_at < $10)
ORDER BY d.seq LIMIT $8;

-- name: list_all
SELECT m.consumer, m.source, m.id, m.grp, m.topic, CASE WHEN $7 THEN m.payload END, CASE WHEN $7 THEN m.headers::text END, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       w.seq, w.consumer, w.topic, w.grp, w.stage, coalesce(w.position, w.seq), w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, coalesce(w.last_seen, m.first_seen),
       d.seq, d.consumer, d.done_at, coalesce(d.runs, 1), d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, coalesce(d.last_seen, m.first_seen), d.purged
FROM {{message}} m LEFT JOIN {{work}} w ON w.seq = m.seq LEFT JOIN {{done}} d ON d.seq = m.seq
WHERE ($1 = '' OR m.consumer = $1) AND m.seq > $2
  AND ($3 = '' OR m.topic = $3) AND ($4 = '' OR m.source = $4) AND ($5 = '' OR m.grp = $5)
  AND $6::int = 0
ORDER BY m.seq LIMIT $8;

-- name: insert_audit
INSERT INTO {{audit}} (at, actor, action, reason, consumer, source, id, detail)
SELECT statement_timestamp(), i.* FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[]) AS i;

-- name: audit
SELECT entry, at, actor, action, reason, consumer, source, id, detail FROM {{audit}}
WHERE ($1 = '' OR consumer = $1) AND ($2::bigint = 0 OR entry < $2) ORDER BY entry DESC LIMIT $3;

-- name: count
INSERT INTO {{total}} AS t (consumer, topic, name, n)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS i(consumer, topic, name, n)
ORDER BY consumer COLLATE "C", topic COLLATE "C", name COLLATE "C"
ON CONFLICT (consumer, topic, name) DO UPDATE SET n = t.n + excluded.n;

-- name: totals
SELECT consumer, topic, name, n FROM {{total}} WHERE $1 = '' OR consumer = $1 ORDER BY consumer, topic, name;

-- name: live_counts
SELECT consumer, topic, stage, count(*) FROM {{work}} WHERE $1 = '' OR consumer = $1
GROUP BY consumer, topic, stage ORDER BY consumer, topic, stage;

-- name: oldest_waiting
SELECT m.first_seen FROM {{work}} w JOIN {{message}} m ON m.seq = w.seq
WHERE w.place = 7 AND w.stage = 7 AND ($1 = '' OR w.consumer = $1) ORDER BY w.ready_position LIMIT 1;

-- name: table_sizes
SELECT c.relname, greatest(c.reltuples, 0)::bigint, pg_total_relation_size(c.oid), true
FROM pg_class c
WHERE c.oid IN ('{{message}}'::regclass, '{{work}}'::regclass, '{{claim}}'::regclass, '{{done}}'::regclass, '{{lane}}'::regclass, '{{audit}}'::regclass)
ORDER BY c.relname;

-- name: pause
INSERT INTO {{pause}} (consumer, topic, at, actor, reason) VALUES ($1, $2, statement_timestamp(), $3, $4)
ON CONFLICT (consumer, topic) DO NOTHING RETURNING topic;

-- name: resume
DELETE FROM {{pause}} WHERE consumer = $1 AND topic = $2 RETURNING topic;

-- name: paused
SELECT topic FROM {{pause}} WHERE consumer = $1 ORDER BY topic;

-- name: version
SELECT coalesce(max(version), 0) FROM {{version}};

-- name: lock_migrations
SELECT pg_advisory_xact_lock(hashtextextended('postroom migrate {{schema}} {{prefix}}', 0));

-- name: has_schema
SELECT nspname FROM pg_namespace WHERE nspname = $1;

-- name: create_schema
CREATE SCHEMA IF NOT EXISTS {{schema}};

-- name: create_version
CREATE TABLE IF NOT EXISTS {{version}} (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());

-- name: insert_version
INSERT INTO {{version}} (version) VALUES ($1) ON CONFLICT (version) DO NOTHING;

-- name: grants
GRANT USAGE ON SCHEMA {{schema}} TO {role};

GRANT SELECT, INSERT, UPDATE, DELETE ON {{message}}, {{work}}, {{claim}}, {{done}}, {{lane}}, {{audit}}, {{total}}, {{pause}} TO {role};
GRANT SELECT ON {{version}}, {{record}} TO {role};
GRANT USAGE ON SEQUENCE {{sequence}} TO {role};
